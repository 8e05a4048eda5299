// 64-bit integers as pairs of words.
alias N = vec2<u32>;
alias W = vec2<u32>;
fn wide_num(w: W) -> N { return w; }
fn wide_raw(n: N) -> W { return n; }

fn add(a: N, b: N) -> N { return pair_add(a, b); }
fn sub(a: N, b: N) -> N { return pair_add(a, pair_neg(b)); }
fn mul(a: N, b: N) -> N { return pair_mul(a, b); }
fn neg(a: N) -> N { return pair_neg(a); }
fn conj(a: N) -> N { return a; }
fn equal(a: N, b: N) -> bool { return pair_equal(a, b); }
fn less(a: N, b: N) -> bool { return pair_less(ordered(a), ordered(b)); }
fn less_equal(a: N, b: N) -> bool { return !less(b, a); }
fn zero() -> N { return vec2<u32>(0u, 0u); }
fn one() -> N { return vec2<u32>(1u, 0u); }

fn pair_of(n: N) -> vec2<u32> { return n; }
fn mean_end(sum: M, count: u32) -> N { return quad_floor(sum, count); }
