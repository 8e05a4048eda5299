// Reduces the last part of a place with many entries, and writes the result.
fn keep(i: u32) -> bool { return head_of(i) != 0u; }
fn value(i: u32) -> Stored {
    let head = head_of(i) - 1u;
    let end = end_of(i);
    let done = (end - head - 1u) / SPAN * SPAN;
    let count = end - head + INCLUDE_SELF;
    if (done == 0u) { return finish(begin(i, head, end, column_of(i)), count); }
    return finish(accumulate(acc_num(load_acc(i)), head + done, end, column_of(i)), count);
}
