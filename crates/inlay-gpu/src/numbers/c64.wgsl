// Complex numbers: two floats of 32 bits.
alias N = vec2<f32>;
alias W = vec2<u32>;
fn wide_num(w: W) -> N { return vec2<f32>(bitcast<f32>(w.x), bitcast<f32>(w.y)); }
fn wide_raw(n: N) -> W { return vec2<u32>(bitcast<u32>(n.x), bitcast<u32>(n.y)); }
fn odd(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn is_nan(n: N) -> bool { return odd(n.x) || odd(n.y); }
fn flip(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }

fn add(a: N, b: N) -> N { return a + b; }
fn sub(a: N, b: N) -> N { return a - b; }
fn mul(a: N, b: N) -> N { return N(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
// By Smith's method: scaled by the larger part of the divisor.
fn div(a: N, b: N) -> N {
    if (abs(b.x) >= abs(b.y)) {
        if (b.x == 0.0 && b.y == 0.0) { return N(a.x / abs(b.x), a.y / abs(b.x)); }
        let ratio = b.y / b.x;
        let scale = 1.0 / (b.x + b.y * ratio);
        return N((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);
    }
    let ratio = b.x / b.y;
    let scale = 1.0 / (b.y + b.x * ratio);
    return N((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
}
fn neg(a: N) -> N { return N(flip(a.x), flip(a.y)); }
fn conj(a: N) -> N { return N(a.x, flip(a.y)); }
fn equal(a: N, b: N) -> bool { return a.x == b.x && a.y == b.y; }
fn zero() -> N { return N(0.0, 0.0); }
fn minus_zero() -> N { return neg(zero()); }
fn one() -> N { return N(1.0, 0.0); }

alias M = N;
fn mean_lift(n: N) -> M { return n; }
fn mean_add(a: M, b: M) -> M { return a + b; }
fn mean_end(sum: M, count: u32) -> N { let n = f32(count); return N(sum.x / n, sum.y / n); }
