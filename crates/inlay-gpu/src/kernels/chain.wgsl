// Each row of a chain comes from one that is done before it, or from none.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    let comes_from = load_p(i);
    let done = select((comes_from < i), (comes_from > i), BACKWARDS == 1u);
    if (comes_from != threads() && !done) { wrong_at(own(0u), i); }
}
