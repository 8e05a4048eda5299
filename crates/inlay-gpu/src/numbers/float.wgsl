// Real floats.
fn add(a: N, b: N) -> N { return a + b; }
fn sub(a: N, b: N) -> N { return a - b; }
fn mul(a: N, b: N) -> N { return a * b; }
fn div(a: N, b: N) -> N { return a / b; }

alias M = N;
fn mean_lift(n: N) -> M { return n; }
fn mean_add(a: M, b: M) -> M { return a + b; }
fn mean_end(sum: M, count: u32) -> N { return sum / N(count); }
