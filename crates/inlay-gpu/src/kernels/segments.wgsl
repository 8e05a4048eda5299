// The entries of a place belong to the threads of the first of them: the first entry in the sorted
// order, plus 1, or 0 for other threads; and the entry after the last.
fn column_of(i: u32) -> u32 { return i % param(0u); }
fn head_of(i: u32) -> u32 {
    let at = i / param(0u);
    if (at > 0u && load_keys(at - 1u) == load_keys(at)) { return 0u; }
    return at + 1u;
}
fn end_of(i: u32) -> u32 { return end_from(i / param(0u)); }
fn address(i: u32) -> u32 { return at_to(load_keys(i / param(0u)) * param(0u) + i % param(0u)); }
