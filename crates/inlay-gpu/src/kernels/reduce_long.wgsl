// The entries of a place of the list. `head_of(i)` is the first entry in the sorted order, plus 1,
// or 0 past the end of the list. `end_of(i)` is the entry after the last one.
fn column_of(i: u32) -> u32 { return i % param(0u); }
fn head_of(i: u32) -> u32 {
    let at = i / param(0u);
    if (at >= load_list(0u)) { return 0u; }
    return load_list(1u + at) + 1u;
}
fn end_of(i: u32) -> u32 { return end_from(head_of(i) - 1u); }
fn element_of(i: u32) -> u32 {
    return load_keys(head_of(i) - 1u) * param(0u) + i % param(0u);
}
fn address(i: u32) -> u32 { return at_to(element_of(i)); }
