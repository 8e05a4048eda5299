// For kernels without checks: `failed()` is true if a check of the batch has failed. The kernel
// then writes nothing.
@group(0) @binding(0) var<uniform> S: vec4<u32>;
fn failed() -> bool { return S.x != 0u; }
