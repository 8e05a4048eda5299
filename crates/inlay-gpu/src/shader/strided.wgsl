// The element of `to` that result `i` is written to.
fn address(i: u32) -> u32 { return at_to(i); }
