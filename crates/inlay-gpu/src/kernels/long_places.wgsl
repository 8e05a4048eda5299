// Lists the places of more than LONG entries: their number, and the first entry of each in the sorted
// order. The order of the list is not defined.
fn work(i: u32) {
    let key = load_keys(i);
    if (i > 0u && load_keys(i - 1u) == key) { return; }
    if (i + LONG >= threads() || load_keys(i + LONG) != key) { return; }
    let at = list_add(0u, 1u);
    // The list is filled with zeros, so exclusive or is an assignment.
    list_xor(1u + at, i);
}
