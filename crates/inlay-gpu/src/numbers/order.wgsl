// The larger and the smaller of two numbers. If they are equal, the result is `a`. If one of them
// is NaN, the result is NaN.
fn larger(a: N, b: N) -> N {
    if (is_nan(b) || less(a, b)) { return b; }
    return a;
}
fn smaller(a: N, b: N) -> N {
    if (is_nan(b) || less(b, a)) { return b; }
    return a;
}
