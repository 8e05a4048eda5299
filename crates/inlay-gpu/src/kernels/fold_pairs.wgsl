// Neighbouring blocks meet; the last of an odd number stays.
fn work(i: u32) {
    let first = (i / own(1u)) * own(0u);
    let k = 2u * (i % own(1u));
    var acc = acc_num(load_a(first + k));
    if (k + 1u < own(0u)) { acc = meet(acc, acc_num(load_a(first + k + 1u))); }
    set_joined(i, acc_raw(acc));
}
