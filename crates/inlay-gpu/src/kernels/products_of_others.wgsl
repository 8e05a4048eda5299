// All factors of a place, by the thread that has the first of them: the products before each are
// kept, and meet those after it on the way back.
fn factor(at: u32, column: u32) -> N { return up(load_x(at_x(load_order(at) * own(0u) + column))); }
fn times(a: N, b: N) -> N { return plain_zero(mul(a, b)); }

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    let width = own(0u);
    let column = i % width;
    let head = i / width;
    let key = load_keys(head);
    if (head > 0u && load_keys(head - 1u) == key) { return; }
    var product = one();
    if (OWN == 1u) { product = up(load_own(at_own(key * width + column))); }
    var end = head;
    while (end < own(1u) && load_keys(end) == key) {
        set_kept(load_order(end) * width + column, wide_raw(product));
        product = times(factor(end, column), product);
        end++;
    }
    let gradient = up(load_g(at_g(key * width + column)));
    product = one();
    for (var at = end; at > head; at--) {
        let element = load_order(at - 1u) * width + column;
        let others = mul(wide_num(kept_word(element)), product);
        put_to(at_to(element), down(mul(gradient, conj(others))));
        product = times(factor(at - 1u, column), product);
    }
}
