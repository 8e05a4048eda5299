// What an element was, in the base that the rest comes from.
fn old(i: u32) -> Word { return load_b(at_b(element_of(i))); }
fn stays(i: u32) -> bool { return true; }
