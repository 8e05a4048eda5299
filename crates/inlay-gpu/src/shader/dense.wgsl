// Driver for dense destinations: one thread for each element.

// The element of `to` that result `i` is written to.
fn address(i: u32) -> u32 { return first_word() + i; }

fn work(i: u32) {
    if (keep(i)) { set_to(address(i), value(i)); }
}
