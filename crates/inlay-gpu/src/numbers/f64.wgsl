// Floats of 64 bits.
alias N = f64;
alias W = vec2<u32>;
fn wide_num(w: W) -> N { return bitcast<f64>(u64(w.x) | (u64(w.y) << 32u)); }
fn wide_raw(n: N) -> W {
    let bits = bitcast<u64>(n);
    return vec2<u32>(u32(bits & 0xfffffffflu), u32(bits >> 32u));
}
fn is_nan(n: N) -> bool { return (bitcast<u64>(n) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu; }

fn add(a: N, b: N) -> N { return a + b; }
fn sub(a: N, b: N) -> N { return a - b; }
fn mul(a: N, b: N) -> N { return a * b; }
fn div(a: N, b: N) -> N { return a / b; }
fn neg(a: N) -> N { return wide_num(wide_raw(a) ^ vec2<u32>(0u, 0x80000000u)); }
fn conj(a: N) -> N { return a; }
fn equal(a: N, b: N) -> bool { return a == b; }
fn less(a: N, b: N) -> bool { return a < b; }
fn less_equal(a: N, b: N) -> bool { return a <= b; }
fn zero() -> N { return 0.0lf; }
fn minus_zero() -> N { return wide_num(vec2<u32>(0u, 0x80000000u)); }
// 0 without its sign. Adding 0 would do, but is left out where kernels are compiled.
fn plain_zero(n: N) -> N {
    if ((bitcast<u64>(n) & 0x7ffffffffffffffflu) == 0lu) { return 0.0lf; }
    return n;
}
fn one() -> N { return 1.0lf; }
fn least() -> N { return wide_num(vec2<u32>(0u, 0xfff00000u)); }
fn most() -> N { return wide_num(vec2<u32>(0u, 0x7ff00000u)); }

alias M = f64;
fn mean_lift(n: N) -> M { return n; }
fn mean_add(a: M, b: M) -> M { return a + b; }
fn mean_end(sum: M, count: u32) -> N { return sum / f64(count); }
