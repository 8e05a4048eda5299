// Reduces the entries of each place in index order. A place without entries, or with more than LONG
// entries, keeps its old value.
fn element_of(i: u32) -> u32 { return i; }
fn keep(i: u32) -> bool {
    let head = load_ends(2u * (i / param(0u)));
    return copies_old() || (head != 0u && load_ends(2u * (i / param(0u)) + 1u) - head < LONG);
}
fn value(i: u32) -> Stored {
    let head = load_ends(2u * (i / param(0u)));
    let end = load_ends(2u * (i / param(0u)) + 1u);
    if (head == 0u || end - head >= LONG) { return old(i); }
    let column = i % param(0u);
    var acc = first_of(i, head - 1u, column);
    for (var at = head; at < end; at++) { acc = join(acc, update(at, column)); }
    return finish(acc, end - head + 1u + INCLUDE_SELF);
}
