// The element of this lane that the index names.
fn value(i: u32) -> Word { return load_a(at_a(i) + load_p(at_p(i)) * own(0u)); }
