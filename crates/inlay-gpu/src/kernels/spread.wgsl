// Replaces each word of a chunk by the sum of the words before it.
fn work(i: u32) {
    var sum = load_sums(i);
    for (var k = i * CHUNK; k < min(i * CHUNK + CHUNK, param(0u)); k++) {
        let word = load_a(k);
        set_a(k, sum);
        sum += word;
    }
}
