// One more part of the places that have more.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    if (head_of(i) == 0u) { return; }
    let head = head_of(i) - 1u;
    let part = own(2u);
    if (end_of(i) - head <= (part + 1u) * SPAN) { return; }
    let end = head + (part + 1u) * SPAN;
    if (part == 0u) {
        set_acc(i, acc_raw(begin(i, head, end, column_of(i))));
    } else {
        set_acc(i, acc_raw(accumulate(acc_num(acc_word(i)), end - SPAN, end, column_of(i))));
    }
}
