// Copies the element with the same index.
fn value(i: u32) -> Stored { return load_a(at_a(i)); }
