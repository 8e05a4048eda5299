// How many are true, if that is more than there are.
fn work(i: u32) {
    let ones = load_before(own(1u));
    if (ones > own(2u)) { wrong_at(own(0u), ones); }
}
