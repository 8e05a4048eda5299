// The row-major number of the element that an entry names.
fn value(i: u32) -> Stored { return at_lanes(i) + load_p(at_p(i)) * param(0u); }
