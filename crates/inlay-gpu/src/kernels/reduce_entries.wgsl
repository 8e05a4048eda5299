// All entries of a place in index order, by the threads of the first of them. Places of very many are
// left to others.
fn element_of(i: u32) -> u32 { return load_keys(i / own(0u)) * own(0u) + i % own(0u); }
fn keep(i: u32) -> bool {
    let at = i / own(0u);
    let key = load_keys(at);
    if (at > 0u && load_keys(at - 1u) == key) { return false; }
    return at + LONG >= own(1u) || load_keys(at + LONG) != key;
}
fn place(i: u32) -> u32 { return at_to(element_of(i)); }
fn value(i: u32) -> Word {
    let head = i / own(0u);
    let column = i % own(0u);
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
