// One thread writes each element, wherever it lies.
// Where an element is written.
fn here(i: u32) -> u32 { return place(i); }

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    if (keep(i)) { put_to(place(i), value(i)); }
}
