// The entries of a run, in order, each to the next place of its digit.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    let run = own(1u);
    for (var k = i * run; k < min(i * run + run, own(3u)); k++) {
        let key = load_keys(k);
        let digit = ((key >> own(0u)) & MASK) * own(2u) + i;
        let at = counts_word(digit);
        set_counts(digit, at + 1u);
        set_to_keys(at, key);
        set_to_order(at, load_order(k));
    }
}
