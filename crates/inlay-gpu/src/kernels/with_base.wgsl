// For a fresh result: old values are read from the base, and elements that no entry names are
// copied from it.
fn old(i: u32) -> Stored { return load_b(at_b(element_of(i))); }
fn copies_old() -> bool { return true; }
