// Sums the words of each chunk.
fn work(i: u32) {
    var sum = 0u;
    for (var k = i * CHUNK; k < min(i * CHUNK + CHUNK, param(0u)); k++) { sum += load_a(k); }
    set_sums(i, sum);
}
