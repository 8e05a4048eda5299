// All entries of a place in index order, by the thread that has the first of them.
fn keep(i: u32) -> bool {
    let at = i / own(0u);
    return at == 0u || load_keys(at - 1u) != load_keys(at);
}
fn place(i: u32) -> u32 { return at_to(load_keys(i / own(0u)) * own(0u) + i % own(0u)); }
fn update(at: u32, column: u32) -> A {
    return lift(num(load_u(at_u(load_order(at) * own(0u) + column))));
}
fn value(i: u32) -> Word {
    let column = i % own(0u);
    let head = i / own(0u);
    let key = load_keys(head);
    var acc = update(head, column);
    if (OWN == 1u) { acc = meet(lift(num(old(i))), acc); }
    var at = head + 1u;
    while (at < own(1u) && load_keys(at) == key) {
        acc = meet(acc, update(at, column));
        at++;
    }
    return raw(finish(acc, at - head + OWN));
}
