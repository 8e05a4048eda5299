// Calls `work(i)` for each `i` below `threads()`.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i < threads() && !failed()) { work(i); }
}
