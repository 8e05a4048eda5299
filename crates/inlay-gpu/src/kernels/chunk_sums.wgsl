// The sum of a chunk.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    var sum = 0u;
    for (var k = i * CHUNK; k < min(i * CHUNK + CHUNK, own(0u)); k++) { sum += load_a(k); }
    set_sums(i, sum);
}
