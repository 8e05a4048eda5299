// All entries of a place, or the place's own.
fn column_of(i: u32) -> u32 { return i % own(0u); }
// The first entry, plus 1, or 0; and the one after the last.
fn head_of(i: u32) -> u32 { return load_ends(2u * (i / own(0u))); }
fn end_of(i: u32) -> u32 { return load_ends(2u * (i / own(0u)) + 1u); }
