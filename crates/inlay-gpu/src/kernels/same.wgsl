// Equal, or both not equal to themselves. A kernel may be compiled as if nothing were so, hence the
// bits are asked.
fn holds(a: N, b: N) -> bool {
    return equal(a, b) || (is_nan(a) && is_nan(b));
}
