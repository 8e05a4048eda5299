// Truth: the sum is or, the product is and, the difference is exclusive or; there is no mean.
alias N = u32;
alias W = u32;
fn wide_num(w: W) -> N { return w; }
fn wide_raw(n: N) -> W { return n; }
fn is_nan(n: N) -> bool { return false; }

fn add(a: N, b: N) -> N { return a | b; }
fn sub(a: N, b: N) -> N { return a ^ b; }
fn mul(a: N, b: N) -> N { return a & b; }
fn neg(a: N) -> N { return a; }
fn conj(a: N) -> N { return a; }
fn equal(a: N, b: N) -> bool { return a == b; }
fn less(a: N, b: N) -> bool { return a < b; }
fn less_equal(a: N, b: N) -> bool { return a <= b; }
fn zero() -> N { return 0u; }
fn minus_zero() -> N { return 0u; }
fn one() -> N { return 1u; }
fn least() -> N { return 0u; }
fn most() -> N { return 1u; }

fn pair_of(n: N) -> vec2<u32> { return vec2<u32>(n, 0u); }

alias M = u32;
fn mean_lift(n: N) -> M { return n; }
fn mean_add(a: M, b: M) -> M { return a | b; }
fn mean_end(sum: M, count: u32) -> N { return sum; }
