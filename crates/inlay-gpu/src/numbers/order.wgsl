// The larger and the smaller, the first of equals, or NaN if one is.
fn larger(a: N, b: N) -> N {
    if (is_nan(b) || less(a, b)) { return b; }
    return a;
}
fn smaller(a: N, b: N) -> N {
    if (is_nan(b) || less(b, a)) { return b; }
    return a;
}
