// For an in-place write: old values are read from the destination, and elements that no entry names
// are not written.
fn old(i: u32) -> Stored { return load_to(address(i)); }
fn copies_old() -> bool { return false; }
