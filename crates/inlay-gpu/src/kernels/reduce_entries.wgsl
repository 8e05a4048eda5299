// Reduces the entries of each place in index order. The threads of the first entry of a place do
// the work. Places with more than LONG entries are skipped.
fn element_of(i: u32) -> u32 { return load_keys(i / param(0u)) * param(0u) + i % param(0u); }
fn keep(i: u32) -> bool {
    let at = i / param(0u);
    let key = load_keys(at);
    if (at > 0u && load_keys(at - 1u) == key) { return false; }
    return at + LONG >= param(1u) || load_keys(at + LONG) != key;
}
fn address(i: u32) -> u32 { return at_to(element_of(i)); }
fn value(i: u32) -> Stored {
    let head = i / param(0u);
    let column = i % param(0u);
    let key = load_keys(head);
    var acc = first_of(i, head, column);
    var at = head + 1u;
    while (at < param(1u) && load_keys(at) == key) {
        acc = join(acc, update(at, column));
        at++;
    }
    return finish(acc, at - head + INCLUDE_SELF);
}
