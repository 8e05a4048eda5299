// One thread writes each element.

// Where an element is written.
fn here(i: u32) -> u32 { return first() + i; }

fn work(i: u32) {
    if (keep(i)) { set_to(here(i), value(i)); }
}
