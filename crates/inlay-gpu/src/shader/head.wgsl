// The beginning of every kernel: parameters and thread numbers.

@group(0) @binding(1) var<uniform> U: array<vec4<u32>, PARAMS>;

const GROUP: u32 = 256u;

// The linear number of a thread in a two-dimensional grid of workgroups.
fn thread(group: vec3<u32>, groups: vec3<u32>, local: u32) -> u32 {
    return (group.y * groups.x + group.x) * GROUP + local;
}

fn threads() -> u32 { return U[0].x; }

// The number of elements of the destination.
fn elements() -> u32 { return U[0].y; }

// Parameter word `k` of the body. The first two words are `threads()` and `elements()`.
fn param(k: u32) -> u32 { return U[(k + 2u) >> 2u][(k + 2u) & 3u]; }
