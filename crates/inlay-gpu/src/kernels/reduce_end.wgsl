// The last part of a place of very many entries, after which it is written.
fn keep(i: u32) -> bool { return head_of(i) != 0u; }
fn value(i: u32) -> Word {
    let head = head_of(i) - 1u;
    let end = end_of(i);
    let done = (end - head - 1u) / SPAN * SPAN;
    if (done == 0u) { return raw(finish(begin(i, head, end, column_of(i)), end - head + OWN)); }
    let acc = accumulate(acc_num(load_acc(i)), head + done, end, column_of(i));
    return raw(finish(acc, end - head + OWN));
}
