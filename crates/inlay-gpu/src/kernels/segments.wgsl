// The entries of a place, which the threads of the first of them have: the first, plus 1, or 0 for
// other threads; and the one after the last.
fn column_of(i: u32) -> u32 { return i % own(0u); }
fn head_of(i: u32) -> u32 {
    let at = i / own(0u);
    if (at > 0u && load_keys(at - 1u) == load_keys(at)) { return 0u; }
    return at + 1u;
}
// The keys are sorted: the first that is another.
fn end_of(i: u32) -> u32 {
    let at = i / own(0u);
    let key = load_keys(at);
    var low = at;
    var high = own(1u);
    while (high - low > 1u) {
        let middle = low + (high - low) / 2u;
        if (load_keys(middle) == key) { low = middle; } else { high = middle; }
    }
    return high;
}
fn place(i: u32) -> u32 { return at_to(load_keys(i / own(0u)) * own(0u) + i % own(0u)); }
