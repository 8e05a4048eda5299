// All entries of a place in index order, or the place's own.
fn keep(i: u32) -> bool { return stays(i) || load_ends(2u * (i / own(0u))) != 0u; }
fn value(i: u32) -> Word {
    let place_of = i / own(0u);
    let column = i % own(0u);
    // The first entry, plus 1, and the one after the last.
    let head = load_ends(2u * place_of);
    if (head == 0u) { return old(i); }
    let end = load_ends(2u * place_of + 1u);
    var acc = update(head - 1u, column);
    if (OWN == 1u) { acc = meet(lift(num(old(i))), acc); }
    for (var at = head; at < end; at++) { acc = meet(acc, update(at, column)); }
    return raw(finish(acc, end - head + 1u + OWN));
}
fn update(at: u32, column: u32) -> A {
    return lift(num(load_u(at_u(load_order(at) * own(0u) + column))));
}
