// All entries of a place in index order, or the place's own. Places of very many are left to others.
fn element_of(i: u32) -> u32 { return i; }
fn keep(i: u32) -> bool {
    let head = load_ends(2u * (i / own(0u)));
    return stays(i) || (head != 0u && load_ends(2u * (i / own(0u)) + 1u) - head < LONG);
}
fn value(i: u32) -> Word {
    let head = load_ends(2u * (i / own(0u)));
    let end = load_ends(2u * (i / own(0u)) + 1u);
    if (head == 0u || end - head >= LONG) { return old(i); }
    let column = i % own(0u);
    var acc = update(head - 1u, column);
    if (OWN == 1u) { acc = meet(lift(num(old(i))), acc); }
    for (var at = head; at < end; at++) { acc = meet(acc, update(at, column)); }
    return raw(finish(acc, end - head + 1u + OWN));
}
