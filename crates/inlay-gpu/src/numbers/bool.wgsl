// Bool. The sum is `or`, the product is `and`, the difference is `exclusive or`. There is no mean.
alias N = u32;
alias W = u32;
fn wide_num(w: W) -> N { return w; }
fn wide_raw(n: N) -> W { return n; }

fn add(a: N, b: N) -> N { return a | b; }
fn sub(a: N, b: N) -> N { return a ^ b; }
fn mul(a: N, b: N) -> N { return a & b; }
fn neg(a: N) -> N { return a; }
fn zero() -> N { return 0u; }
fn one() -> N { return 1u; }
fn least() -> N { return 0u; }
fn most() -> N { return 1u; }

fn pair_of(n: N) -> vec2<u32> { return vec2<u32>(n, 0u); }
