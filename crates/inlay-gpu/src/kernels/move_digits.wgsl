// The entries of a run, in order, each to the next place of its digit.
fn work(i: u32) {
    let run = own(1u);
    for (var k = i * run; k < min(i * run + run, own(3u)); k++) {
        let key = load_keys(k);
        let digit = ((key >> own(0u)) & MASK) * own(2u) + i;
        let at = counts_word(digit);
        set_counts(digit, at + 1u);
        set_to_keys(at, key);
        set_to_order(at, load_order(k));
    }
}
