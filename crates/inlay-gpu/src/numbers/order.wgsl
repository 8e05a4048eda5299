// The larger and the smaller of two numbers: the first if they are equal, NaN if one of them is NaN.
fn larger(a: N, b: N) -> N {
    if (is_nan(b) || less(a, b)) { return b; }
    return a;
}
fn smaller(a: N, b: N) -> N {
    if (is_nan(b) || less(b, a)) { return b; }
    return a;
}
