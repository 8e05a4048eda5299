// An entry to the place that is the number of those before it.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    let key = load_keys(i);
    var before = 0u;
    for (var k = 0u; k < threads(); k++) {
        let other = load_keys(k);
        if (other < key || (other == key && k < i)) { before++; }
    }
    set_to_keys(before, key);
    set_to_order(before, i);
}
