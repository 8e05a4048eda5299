// The entries of a listed place: the first, plus 1, or 0 past the list; and the one after the last.
fn column_of(i: u32) -> u32 { return i % own(0u); }
fn head_of(i: u32) -> u32 {
    let at = i / own(0u);
    if (at >= load_list(0u)) { return 0u; }
    return load_list(1u + at) + 1u;
}
fn end_of(i: u32) -> u32 {
    let at = head_of(i) - 1u;
    let key = load_keys(at);
    var low = at;
    var high = own(1u);
    while (high - low > 1u) {
        let middle = low + (high - low) / 2u;
        if (load_keys(middle) == key) { low = middle; } else { high = middle; }
    }
    return high;
}
fn element_of(i: u32) -> u32 {
    return load_keys(head_of(i) - 1u) * own(0u) + i % own(0u);
}
fn place(i: u32) -> u32 { return at_to(element_of(i)); }
