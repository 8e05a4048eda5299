// Complex numbers as pairs of floats of type F.
alias N = vec2<F>;
fn is_nan(n: N) -> bool { return part_is_nan(n.x) || part_is_nan(n.y); }

fn add(a: N, b: N) -> N { return a + b; }
fn sub(a: N, b: N) -> N { return a - b; }
fn mul(a: N, b: N) -> N { return N(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
// Smith's method: dividing by the larger part of the divisor first avoids overflow.
fn div(a: N, b: N) -> N {
    if (abs(b.x) >= abs(b.y)) {
        if (equal(b, zero())) { return N(a.x / abs(b.x), a.y / abs(b.x)); }
        let ratio = b.y / b.x;
        let scale = one().x / (b.x + b.y * ratio);
        return N((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);
    }
    let ratio = b.x / b.y;
    let scale = one().x / (b.y + b.x * ratio);
    return N((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
}
fn neg(a: N) -> N { return N(flip(a.x), flip(a.y)); }
fn conj(a: N) -> N { return N(a.x, flip(a.y)); }
fn equal(a: N, b: N) -> bool { return a.x == b.x && a.y == b.y; }
fn minus_zero() -> N { return neg(zero()); }

alias M = N;
fn mean_lift(n: N) -> M { return n; }
fn mean_add(a: M, b: M) -> M { return a + b; }
fn mean_end(sum: M, count: u32) -> N { let n = F(count); return N(sum.x / n, sum.y / n); }
