// Old values are where the results are written, and elements that no entry names stay.
fn old(i: u32) -> Stored { return load_to(address(i)); }
fn copies_old() -> bool { return false; }
