// Reports the number of true elements if it is larger than the number of elements of the source.
fn work(i: u32) {
    let ones = load_before(param(1u));
    if (ones > param(2u)) { wrong_at(param(0u), ones); }
}
