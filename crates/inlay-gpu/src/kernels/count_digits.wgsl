// How often each digit occurs in a run, at the digit's place for the run.
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
        let at = ((load_keys(k) >> own(0u)) & MASK) * own(2u) + i;
        set_counts(at, counts_word(at) + 1u);
    }
}
