// The driver for elements at any address: one thread per element.
fn work(i: u32) {
    if (keep(i)) { put_to(address(i), value(i)); }
}
