// Integers and bool. They have no NaN and no negative 0. The sum of a mean has 128 bits.
fn is_nan(n: N) -> bool { return false; }
fn minus_zero() -> N { return zero(); }

alias M = vec4<u32>;
fn mean_add(a: M, b: M) -> M { return quad_add(a, b); }
