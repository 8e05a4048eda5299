// How often each digit occurs in a run, at the digit's place for the run.
fn work(i: u32) {
    let run = own(1u);
    for (var k = i * run; k < min(i * run + run, own(3u)); k++) {
        let at = ((load_keys(k) >> own(0u)) & MASK) * own(2u) + i;
        set_counts(at, counts_word(at) + 1u);
    }
}
