// Numbers that are WGSL scalars.
fn conj(a: N) -> N { return a; }
fn equal(a: N, b: N) -> bool { return a == b; }
fn less(a: N, b: N) -> bool { return a < b; }
fn less_equal(a: N, b: N) -> bool { return a <= b; }
