// Words of a chunk become the sums of those before them.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    var sum = load_sums(i);
    for (var k = i * CHUNK; k < min(i * CHUNK + CHUNK, own(0u)); k++) {
        let word = load_a(k);
        set_a(k, sum);
        sum += word;
    }
}
