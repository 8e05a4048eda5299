// Multiplies the gradient of a place by all of its factors. The threads of the first entry of a
// place do the work. Each launch processes up to SPAN factors of each place.
fn factor(at: u32, column: u32) -> N {
    return up(load_x(at_x(load_order(at) * param(0u) + column)));
}

fn work(i: u32) {
    if (head_of(i) == 0u) { return; }
    let head = head_of(i) - 1u;
    let end = end_of(i);
    let skip = param(2u) * SPAN;
    if (end - head <= skip) { return; }
    let column = column_of(i);
    var product = factor(head, column);
    var at = head + 1u;
    if (param(2u) > 0u) {
        product = wide_num(carry_word(i));
        at = head + skip;
    }
    let stop = min(end, head + skip + SPAN);
    while (at < stop) {
        product = mul(product, factor(at, column));
        at++;
    }
    if (stop < end) {
        set_carry(i, wide_raw(product));
    } else {
        let to = address(i);
        put_to(to, down(mul(up(load_to(to)), conj(product))));
    }
}
