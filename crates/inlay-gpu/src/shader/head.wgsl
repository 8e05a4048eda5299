// What every kernel begins with: its parameters and its thread's number.

@group(0) @binding(1) var<uniform> U: array<vec4<u32>, PARAMS>;

const GROUP: u32 = 256u;

// The number of a thread in a grid of two dimensions.
fn thread(group: vec3<u32>, groups: vec3<u32>, local: u32) -> u32 {
    return (group.y * groups.x + group.x) * GROUP + local;
}

fn threads() -> u32 { return U[0].x; }

// How many elements the destination has.
fn elements() -> u32 { return U[0].y; }

// Words of the kernel's own.
fn own(k: u32) -> u32 { return U[(k + 2u) >> 2u][(k + 2u) & 3u]; }
