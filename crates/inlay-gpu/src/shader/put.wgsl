// One thread writes each element, wherever it lies.

// Where an element is written.
fn here(i: u32) -> u32 { return place(i); }

fn work(i: u32) {
    if (keep(i)) { put_to(here(i), value(i)); }
}
