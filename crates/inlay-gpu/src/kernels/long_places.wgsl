// A list of the places of very many entries: how many, and the first entry of each. Their order is any.
fn work(i: u32) {
    let key = load_keys(i);
    if (i > 0u && load_keys(i - 1u) == key) { return; }
    if (i + LONG >= threads() || load_keys(i + LONG) != key) { return; }
    let at = list_add(0u, 1u);
    // It was 0.
    list_xor(1u + at, i);
}
