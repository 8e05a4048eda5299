// The sum of a chunk.
fn work(i: u32) {
    var sum = 0u;
    for (var k = i * CHUNK; k < min(i * CHUNK + CHUNK, own(0u)); k++) { sum += load_a(k); }
    set_sums(i, sum);
}
