// Floats of 32 bits, in which those of 16 are computed, too.
alias N = f32;
alias W = u32;
fn wide_num(w: W) -> N { return bitcast<f32>(w); }
fn wide_raw(n: N) -> W { return bitcast<u32>(n); }

// A kernel may be compiled as if there were no NaN, so that the bits are asked.
fn is_nan(n: N) -> bool { return (bitcast<u32>(n) & 0x7fffffffu) > 0x7f800000u; }

fn add(a: N, b: N) -> N { return a + b; }
fn sub(a: N, b: N) -> N { return a - b; }
fn mul(a: N, b: N) -> N { return a * b; }
fn div(a: N, b: N) -> N { return a / b; }
fn neg(a: N) -> N { return bitcast<f32>(bitcast<u32>(a) ^ 0x80000000u); }
fn conj(a: N) -> N { return a; }
fn equal(a: N, b: N) -> bool { return a == b; }
fn less(a: N, b: N) -> bool { return a < b; }
fn less_equal(a: N, b: N) -> bool { return a <= b; }
fn zero() -> N { return 0.0; }
fn minus_zero() -> N { return bitcast<f32>(0x80000000u | (U[0].x & 0u)); }
// 0 without its sign. Adding 0 would do, but is left out where kernels are compiled.
fn plain_zero(n: N) -> N {
    if ((bitcast<u32>(n) & 0x7fffffffu) == 0u) { return 0.0; }
    return n;
}
fn one() -> N { return 1.0; }
fn least() -> N { return bitcast<f32>(0xff800000u | (U[0].x & 0u)); }
fn most() -> N { return bitcast<f32>(0x7f800000u | (U[0].x & 0u)); }

alias M = f32;
fn mean_lift(n: N) -> M { return n; }
fn mean_add(a: M, b: M) -> M { return a + b; }
fn mean_end(sum: M, count: u32) -> N { return sum / f32(count); }
