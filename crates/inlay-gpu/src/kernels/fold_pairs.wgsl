// Neighbouring blocks meet; the last of an odd number stays.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = thread(group, groups, local);
    if (i >= threads() || failed()) { return; }
    let first = (i / own(1u)) * own(0u);
    let k = 2u * (i % own(1u));
    var acc = acc_num(load_a(first + k));
    if (k + 1u < own(0u)) { acc = meet(acc, acc_num(load_a(first + k + 1u))); }
    set_joined(i, acc_raw(acc));
}
