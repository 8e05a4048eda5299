// What an element was, where it is written.
fn old(i: u32) -> Word { return load_to(here(i)); }
fn stays(i: u32) -> bool { return false; }
