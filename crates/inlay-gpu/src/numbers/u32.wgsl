// Unsigned integers of up to 32 bits.
alias N = u32;
alias W = u32;
fn wide_num(w: W) -> N { return w; }
fn wide_raw(n: N) -> W { return n; }
fn is_nan(n: N) -> bool { return false; }

fn add(a: N, b: N) -> N { return a + b; }
fn sub(a: N, b: N) -> N { return a - b; }
fn mul(a: N, b: N) -> N { return a * b; }
fn neg(a: N) -> N { return 0u - a; }
fn conj(a: N) -> N { return a; }
fn equal(a: N, b: N) -> bool { return a == b; }
fn less(a: N, b: N) -> bool { return a < b; }
fn less_equal(a: N, b: N) -> bool { return a <= b; }
fn zero() -> N { return 0u; }
fn minus_zero() -> N { return 0u; }
fn one() -> N { return 1u; }
fn least() -> N { return 0u; }
fn most() -> N { return 0xffffffffu; }

fn pair_of(n: N) -> vec2<u32> { return vec2<u32>(n, 0u); }

alias M = vec4<u32>;
fn mean_lift(n: N) -> M { return vec4<u32>(n, 0u, 0u, 0u); }
fn mean_add(a: M, b: M) -> M { return quad_add(a, b); }
fn mean_end(sum: M, count: u32) -> N { return quad_floor(sum, count).x; }
