// Signed integers of up to 32 bits. Results wrap, so the arithmetic is unsigned.
alias N = i32;
alias W = u32;
fn wide_num(w: W) -> N { return bitcast<i32>(w); }
fn wide_raw(n: N) -> W { return bitcast<u32>(n); }

fn add(a: N, b: N) -> N { return bitcast<i32>(bitcast<u32>(a) + bitcast<u32>(b)); }
fn sub(a: N, b: N) -> N { return bitcast<i32>(bitcast<u32>(a) - bitcast<u32>(b)); }
fn mul(a: N, b: N) -> N { return bitcast<i32>(bitcast<u32>(a) * bitcast<u32>(b)); }
fn neg(a: N) -> N { return sub(0, a); }
fn zero() -> N { return 0; }
fn one() -> N { return 1; }
// WGSL forbids this integer in constant expressions. `U[0].x & 0u` is 0, but not a constant.
fn least() -> N { return bitcast<i32>(0x80000000u | (U[0].x & 0u)); }
fn most() -> N { return 0x7fffffff; }

// The number, sign-extended to 64 bits.
fn pair_of(n: N) -> vec2<u32> { return vec2<u32>(bitcast<u32>(n), bitcast<u32>(n >> 31u)); }
fn mean_lift(n: N) -> M {
    let sign = bitcast<u32>(n >> 31u);
    return vec4<u32>(bitcast<u32>(n), sign, sign, sign);
}
fn mean_end(sum: M, count: u32) -> N { return bitcast<i32>(quad_floor(sum, count).x); }
