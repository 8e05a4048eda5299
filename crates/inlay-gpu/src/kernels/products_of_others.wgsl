// For each factor, multiplies the gradient of its place by all other factors of the place. The
// threads of the first entry of a place do the work. The forward pass stores the product of the
// factors before each factor. The backward pass multiplies it by the product of the factors after
// it. Each launch processes up to SPAN factors of each place.
fn factor(element: u32) -> N { return up(load_x(at_x(element))); }
fn times(a: N, b: N) -> N { return plain_zero(mul(a, b)); }

fn work(i: u32) {
    let width = param(0u);
    let column = column_of(i);
    if (head_of(i) == 0u) { return; }
    let head = head_of(i) - 1u;
    let end = end_of(i);
    let skip = param(2u) * SPAN;
    if (end - head <= skip) { return; }
    var product = one();
    if (param(2u) > 0u) { product = wide_num(carry_word(i)); }
    if (BACK == 0u) {
        if (HAS_INITIAL == 1u && param(2u) == 0u) {
            product = up(load_initial(at_initial(load_keys(head) * width + column)));
        }
        for (var at = head + skip; at < min(end, head + skip + SPAN); at++) {
            let element = load_order(at) * width + column;
            set_before(element, wide_raw(product));
            product = times(factor(element), product);
        }
    } else {
        let gradient = up(load_g(at_g(load_keys(head) * width + column)));
        let last = end - skip;
        var at = last;
        while (at > head && last - at < SPAN) {
            let element = load_order(at - 1u) * width + column;
            let others = mul(wide_num(before_word(element)), product);
            put_to(at_to(element), down(mul(gradient, conj(others))));
            product = times(factor(element), product);
            at--;
        }
    }
    set_carry(i, wide_raw(product));
}
