// A place's gradient times all of its factors, by the thread that has the first of them.
fn factor(at: u32, column: u32) -> N { return up(load_x(at_x(load_order(at) * own(0u) + column))); }
fn keep(i: u32) -> bool {
    let at = i / own(0u);
    return at == 0u || load_keys(at - 1u) != load_keys(at);
}
fn place(i: u32) -> u32 { return at_to(load_keys(i / own(0u)) * own(0u) + i % own(0u)); }
fn value(i: u32) -> Word {
    let column = i % own(0u);
    let head = i / own(0u);
    let key = load_keys(head);
    var product = factor(head, column);
    for (var at = head + 1u; at < own(1u) && load_keys(at) == key; at++) {
        product = mul(product, factor(at, column));
    }
    return down(mul(up(load_to(place(i))), conj(product)));
}
