// Stores two words per place: its first entry in the sorted order, plus 1, and the entry after its
// last one. Both words of a place without entries stay 0.
fn work(i: u32) {
    let key = load_keys(i);
    if (i == 0u || load_keys(i - 1u) != key) { set_ends(2u * key, i + 1u); }
    if (i + 1u == threads() || load_keys(i + 1u) != key) { set_ends(2u * key + 1u, i + 1u); }
}
