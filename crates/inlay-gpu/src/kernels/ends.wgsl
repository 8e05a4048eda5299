// Where the entries of a place begin and end in the sorted order.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    let key = load_keys(i);
    if (i == 0u || load_keys(i - 1u) != key) { set_ends(2u * key, i + 1u); }
    if (i + 1u == threads() || load_keys(i + 1u) != key) { set_ends(2u * key + 1u, i + 1u); }
}
