// The number of the element that an entry names.
fn value(i: u32) -> Word { return at_lanes(i) + load_p(at_p(i)) * own(0u); }
