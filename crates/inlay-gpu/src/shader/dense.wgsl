// The driver for dense destinations: one thread per element.

// The element of `to` that receives result `i`.
fn address(i: u32) -> u32 { return first_word() + i; }

fn work(i: u32) {
    if (keep(i)) { set_to(address(i), value(i)); }
}
