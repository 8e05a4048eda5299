// All factors of a place, by the thread that has the first of them: the products before each are
// kept, and meet those after it on the way back. A part of each place at a time.
fn factor(element: u32) -> N { return up(load_x(at_x(element))); }
fn times(a: N, b: N) -> N { return plain_zero(mul(a, b)); }

fn work(i: u32) {
    let width = own(0u);
    let column = column_of(i);
    if (head_of(i) == 0u) { return; }
    let head = head_of(i) - 1u;
    let end = end_of(i);
    let skip = own(2u) * SPAN;
    if (end - head <= skip) { return; }
    var product = one();
    if (own(2u) > 0u) { product = wide_num(carry_word(i)); }
    if (BACK == 0u) {
        if (OWN == 1u && own(2u) == 0u) {
            product = up(load_own(at_own(load_keys(head) * width + column)));
        }
        for (var at = head + skip; at < min(end, head + skip + SPAN); at++) {
            let element = load_order(at) * width + column;
            set_kept(element, wide_raw(product));
            product = times(factor(element), product);
        }
    } else {
        let gradient = up(load_g(at_g(load_keys(head) * width + column)));
        let last = end - skip;
        var at = last;
        while (at > head && last - at < SPAN) {
            let element = load_order(at - 1u) * width + column;
            let others = mul(wide_num(kept_word(element)), product);
            put_to(at_to(element), down(mul(gradient, conj(others))));
            product = times(factor(element), product);
            at--;
        }
    }
    set_carry(i, wide_raw(product));
}
