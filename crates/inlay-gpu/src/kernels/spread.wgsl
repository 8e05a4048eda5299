// Words of a chunk become the sums of those before them.
fn work(i: u32) {
    var sum = load_sums(i);
    for (var k = i * CHUNK; k < min(i * CHUNK + CHUNK, own(0u)); k++) {
        let word = load_a(k);
        set_a(k, sum);
        sum += word;
    }
}
