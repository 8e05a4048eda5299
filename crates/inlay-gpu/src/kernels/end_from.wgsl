// The first entry after `at` in the sorted order that names another place. This is a binary search.
fn end_from(at: u32) -> u32 {
    let key = load_keys(at);
    var low = at;
    var high = param(1u);
    while (high - low > 1u) {
        let middle = low + (high - low) / 2u;
        if (load_keys(middle) == key) { low = middle; } else { high = middle; }
    }
    return high;
}
