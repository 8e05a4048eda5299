// Numbers without an order: nothing asks for it.
fn less(a: N, b: N) -> bool { return false; }
fn less_equal(a: N, b: N) -> bool { return false; }
fn least() -> N { return zero(); }
fn most() -> N { return zero(); }
fn larger(a: N, b: N) -> N { return a; }
fn smaller(a: N, b: N) -> N { return a; }
