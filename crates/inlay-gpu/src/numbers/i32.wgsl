// Signed integers of up to 32 bits.
alias N = i32;
alias W = u32;
fn wide_num(w: W) -> N { return bitcast<i32>(w); }
fn wide_raw(n: N) -> W { return bitcast<u32>(n); }
fn is_nan(n: N) -> bool { return false; }

fn add(a: N, b: N) -> N { return bitcast<i32>(bitcast<u32>(a) + bitcast<u32>(b)); }
fn sub(a: N, b: N) -> N { return bitcast<i32>(bitcast<u32>(a) - bitcast<u32>(b)); }
fn mul(a: N, b: N) -> N { return bitcast<i32>(bitcast<u32>(a) * bitcast<u32>(b)); }
fn neg(a: N) -> N { return sub(0, a); }
fn conj(a: N) -> N { return a; }
fn equal(a: N, b: N) -> bool { return a == b; }
fn less(a: N, b: N) -> bool { return a < b; }
fn less_equal(a: N, b: N) -> bool { return a <= b; }
fn zero() -> N { return 0; }
fn minus_zero() -> N { return 0; }
fn one() -> N { return 1; }
fn least() -> N { return bitcast<i32>(0x80000000u | (U[0].x & 0u)); }
fn most() -> N { return 0x7fffffff; }

// A number of 64 bits that wraps as it does.
fn pair_of(n: N) -> vec2<u32> { return vec2<u32>(bitcast<u32>(n), bitcast<u32>(n >> 31u)); }

alias M = vec4<u32>;
fn mean_lift(n: N) -> M {
    let sign = bitcast<u32>(n >> 31u);
    return vec4<u32>(bitcast<u32>(n), sign, sign, sign);
}
fn mean_add(a: M, b: M) -> M { return quad_add(a, b); }
fn mean_end(sum: M, count: u32) -> N { return bitcast<i32>(quad_floor(sum, count).x); }
