// The entries of a place, for the threads of its first entry. `head_of(i)` is the first entry in
// the sorted order, plus 1, or 0 in the threads of other entries. `end_of(i)` is the entry after
// the last one.
fn column_of(i: u32) -> u32 { return i % param(0u); }
fn head_of(i: u32) -> u32 {
    let at = i / param(0u);
    if (at > 0u && load_keys(at - 1u) == load_keys(at)) { return 0u; }
    return at + 1u;
}
fn end_of(i: u32) -> u32 { return end_from(i / param(0u)); }
fn address(i: u32) -> u32 { return at_to(load_keys(i / param(0u)) * param(0u) + i % param(0u)); }
