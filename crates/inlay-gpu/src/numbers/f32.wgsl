// 32-bit floats. 16-bit floats are also computed as 32-bit floats.
alias N = f32;
alias W = u32;
fn wide_num(w: W) -> N { return bitcast<f32>(w); }
fn wide_raw(n: N) -> W { return bitcast<u32>(n); }

// Tests the bits, because a shader compiler may assume that there is no NaN.
fn is_nan(n: N) -> bool { return (bitcast<u32>(n) & 0x7fffffffu) > 0x7f800000u; }
fn neg(a: N) -> N { return bitcast<f32>(bitcast<u32>(a) ^ 0x80000000u); }
// Converts -0 to 0. Adding 0 would do the same, but compilers remove the addition.
fn plain_zero(n: N) -> N {
    if ((bitcast<u32>(n) & 0x7fffffffu) == 0u) { return 0.0; }
    return n;
}
fn zero() -> N { return 0.0; }
fn one() -> N { return 1.0; }
// WGSL forbids these floats in constant expressions. `U[0].x & 0u` is 0, but not a constant.
fn minus_zero() -> N { return bitcast<f32>(0x80000000u | (U[0].x & 0u)); }
fn least() -> N { return bitcast<f32>(0xff800000u | (U[0].x & 0u)); }
fn most() -> N { return bitcast<f32>(0x7f800000u | (U[0].x & 0u)); }
