// Each row of a chain comes from one that is done before it, or from none.
fn work(i: u32) {
    let comes_from = load_p(i);
    let done = select((comes_from < i), (comes_from > i), BACKWARDS == 1u);
    if (comes_from != threads() && !done) { wrong_at(own(0u), i); }
}
