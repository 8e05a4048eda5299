// The element of `to` that receives result `i`.
fn address(i: u32) -> u32 { return at_to(i); }
