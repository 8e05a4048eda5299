// Lists the places with more than LONG entries. The list has their number, then the first entry of
// each place in the sorted order. The places are listed in any order.
fn work(i: u32) {
    let key = load_keys(i);
    if (i > 0u && load_keys(i - 1u) == key) { return; }
    if (i + LONG >= threads() || load_keys(i + LONG) != key) { return; }
    let at = list_add(0u, 1u);
    // The list starts as zeros, so the exclusive or stores the value.
    list_xor(1u + at, i);
}
