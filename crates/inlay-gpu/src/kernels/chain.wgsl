// Checks that each row depends on no other row, or on a row that is computed before it.
fn work(i: u32) {
    let comes_from = load_p(i);
    let done = select((comes_from < i), (comes_from > i), BACKWARDS == 1u);
    if (comes_from != threads() && !done) { wrong_at(param(0u), i); }
}
