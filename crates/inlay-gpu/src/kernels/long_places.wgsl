// A list of the places of very many entries: how many, and the first entry of each. Their order is any.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    let key = load_keys(i);
    if (i > 0u && load_keys(i - 1u) == key) { return; }
    if (i + LONG >= threads() || load_keys(i + LONG) != key) { return; }
    let at = list_add(0u, 1u);
    // It was 0.
    list_xor(1u + at, i);
}
