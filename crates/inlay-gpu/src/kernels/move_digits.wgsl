// Moves the entries of a run in order. Each goes to the next free position of its digit.
fn work(i: u32) {
    let run = param(1u);
    for (var k = i * run; k < min(i * run + run, param(3u)); k++) {
        let key = load_keys(k);
        let digit = ((key >> param(0u)) & MASK) * param(2u) + i;
        let at = counts_word(digit);
        set_counts(digit, at + 1u);
        set_to_keys(at, key);
        set_to_order(at, load_order(k));
    }
}
