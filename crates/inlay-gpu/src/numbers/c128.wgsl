// Complex numbers: two floats of 64 bits.
fn from_words(w: vec2<u32>) -> f64 { return bitcast<f64>(u64(w.x) | (u64(w.y) << 32u)); }
fn to_words(x: f64) -> vec2<u32> {
    let bits = bitcast<u64>(x);
    return vec2<u32>(u32(bits & 0xfffffffflu), u32(bits >> 32u));
}
alias N = vec2<f64>;
alias W = vec4<u32>;
fn wide_num(w: W) -> N { return vec2<f64>(from_words(w.xy), from_words(w.zw)); }
fn wide_raw(n: N) -> W { return vec4<u32>(to_words(n.x), to_words(n.y)); }
fn odd(x: f64) -> bool { return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu; }
fn is_nan(n: N) -> bool { return odd(n.x) || odd(n.y); }
fn flip(x: f64) -> f64 { return from_words(to_words(x) ^ vec2<u32>(0u, 0x80000000u)); }

fn add(a: N, b: N) -> N { return a + b; }
fn sub(a: N, b: N) -> N { return a - b; }
fn mul(a: N, b: N) -> N { return N(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
// By Smith's method: scaled by the larger part of the divisor.
fn div(a: N, b: N) -> N {
    if (abs(b.x) >= abs(b.y)) {
        if (b.x == 0.0lf && b.y == 0.0lf) { return N(a.x / abs(b.x), a.y / abs(b.x)); }
        let ratio = b.y / b.x;
        let scale = 1.0lf / (b.x + b.y * ratio);
        return N((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);
    }
    let ratio = b.x / b.y;
    let scale = 1.0lf / (b.y + b.x * ratio);
    return N((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
}
fn neg(a: N) -> N { return N(flip(a.x), flip(a.y)); }
fn conj(a: N) -> N { return N(a.x, flip(a.y)); }
fn equal(a: N, b: N) -> bool { return a.x == b.x && a.y == b.y; }
fn zero() -> N { return N(0.0lf, 0.0lf); }
fn minus_zero() -> N { return neg(zero()); }
// 0 without its sign. Adding 0 would do, but is left out where kernels are compiled.
fn plain(x: f64) -> f64 {
    if ((bitcast<u64>(x) & 0x7ffffffffffffffflu) == 0lu) { return 0.0lf; }
    return x;
}
fn plain_zero(n: N) -> N { return N(plain(n.x), plain(n.y)); }
fn one() -> N { return N(1.0lf, 0.0lf); }

alias M = N;
fn mean_lift(n: N) -> M { return n; }
fn mean_add(a: M, b: M) -> M { return a + b; }
fn mean_end(sum: M, count: u32) -> N { let n = f64(count); return N(sum.x / n, sum.y / n); }
