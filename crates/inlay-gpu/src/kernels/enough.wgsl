// Fails if the mask has more true elements than the source has elements. It reports their number as
// the wrong position.
fn work(i: u32) {
    let ones = load_before(param(1u));
    if (ones > param(2u)) { wrong_at(param(0u), ones); }
}
