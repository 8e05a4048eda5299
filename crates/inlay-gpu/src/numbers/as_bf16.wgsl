// bf16 is the upper half of a 32-bit float. `raw` rounds once, ties to even.
fn num(h: u32) -> f32 {
    let quiet = select(0u, 0x40u, (h & 0x7fffu) > 0x7f80u);
    return bitcast<f32>((h | quiet) << 16u);
}

fn raw(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
