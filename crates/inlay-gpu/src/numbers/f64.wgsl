// 64-bit floats.
alias N = f64;
alias W = vec2<u32>;
fn wide_num(w: W) -> N { return bitcast<f64>(u64(w.x) | (u64(w.y) << 32u)); }
fn wide_raw(n: N) -> W {
    let bits = bitcast<u64>(n);
    return vec2<u32>(u32(bits & 0xfffffffflu), u32(bits >> 32u));
}

// Tests the bits, because a shader compiler may assume that there is no NaN.
fn is_nan(n: N) -> bool { return (bitcast<u64>(n) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu; }
fn neg(a: N) -> N { return wide_num(wide_raw(a) ^ vec2<u32>(0u, 0x80000000u)); }
// Converts -0 to 0. Adding 0 would do the same, but compilers remove the addition.
fn plain_zero(n: N) -> N {
    if ((bitcast<u64>(n) & 0x7ffffffffffffffflu) == 0lu) { return 0.0lf; }
    return n;
}
fn zero() -> N { return 0.0lf; }
fn one() -> N { return 1.0lf; }
fn minus_zero() -> N { return wide_num(vec2<u32>(0u, 0x80000000u)); }
fn least() -> N { return wide_num(vec2<u32>(0u, 0xfff00000u)); }
fn most() -> N { return wide_num(vec2<u32>(0u, 0x7ff00000u)); }
