// Counts how often each digit occurs in a run of entries. The counts are ordered by digit, then by
// run, so that their prefix sum gives the positions of a stable sort.
fn work(i: u32) {
    let run = param(1u);
    for (var k = i * run; k < min(i * run + run, param(3u)); k++) {
        let at = ((load_keys(k) >> param(0u)) & MASK) * param(2u) + i;
        set_counts(at, counts_word(at) + 1u);
    }
}
