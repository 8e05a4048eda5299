// Copies the element that the index names in the lane of result `i`.
fn value(i: u32) -> Stored { return load_a(at_a(i) + load_p(at_p(i)) * param(0u)); }
