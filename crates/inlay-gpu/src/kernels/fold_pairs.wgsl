// Joins the results of neighbouring blocks. The last one of an odd number is copied.
fn work(i: u32) {
    let first = (i / param(1u)) * param(0u);
    let k = 2u * (i % param(1u));
    var acc = acc_num(load_a(first + k));
    if (k + 1u < param(0u)) { acc = join(acc, acc_num(load_a(first + k + 1u))); }
    set_joined(i, acc_raw(acc));
}
