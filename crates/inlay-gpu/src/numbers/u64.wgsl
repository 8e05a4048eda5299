// Unsigned 64-bit integers. They compare without a conversion.
fn ordered(a: N) -> N { return a; }
fn least() -> N { return vec2<u32>(0u, 0u); }
fn most() -> N { return vec2<u32>(0xffffffffu, 0xffffffffu); }
fn mean_lift(n: N) -> M { return vec4<u32>(n, 0u, 0u); }
