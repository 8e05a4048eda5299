// How many are true, if that is more than there are.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    let ones = load_before(own(1u));
    if (ones > own(2u)) { wrong_at(own(0u), ones); }
}
