// Signed 64-bit integers. After inverting the sign bit, they compare like unsigned integers.
fn ordered(a: N) -> N { return a ^ vec2<u32>(0u, 0x80000000u); }
fn least() -> N { return vec2<u32>(0u, 0x80000000u); }
fn most() -> N { return vec2<u32>(0xffffffffu, 0x7fffffffu); }
fn mean_lift(n: N) -> M {
    let sign = 0u - (n.y >> 31u);
    return vec4<u32>(n, sign, sign);
}
