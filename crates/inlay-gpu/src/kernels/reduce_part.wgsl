// Reduces part `param(2)` of each place that has a later part. `reduce_end.wgsl` reduces the last
// one.
fn work(i: u32) {
    if (head_of(i) == 0u) { return; }
    let head = head_of(i) - 1u;
    let part = param(2u);
    if (end_of(i) - head <= (part + 1u) * SPAN) { return; }
    let end = head + (part + 1u) * SPAN;
    if (part == 0u) {
        set_acc(i, acc_raw(begin(i, head, end, column_of(i))));
    } else {
        set_acc(i, acc_raw(accumulate(acc_num(acc_word(i)), end - SPAN, end, column_of(i))));
    }
}
