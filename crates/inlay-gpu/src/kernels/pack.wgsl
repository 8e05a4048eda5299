// Packs 32 elements into a word of a bitmap, and counts those that are true. The last thread has no
// word and counts 0. After the prefix sum, its count is the total.
fn work(i: u32) {
    var bits = 0u;
    if (DENSE == 1u) {
        // A dense mask is read as words of four elements.
        for (var k = 0u; k < 8u; k++) {
            let left = min(param(0u) - min(i * 32u + k * 4u, param(0u)), 4u);
            if (left == 0u) { break; }
            let word = a_word(param(1u) + i * 8u + k);
            for (var part = 0u; part < left; part++) {
                if (((word >> (part * 8u)) & 0xffu) != 0u) { bits |= 1u << (k * 4u + part); }
            }
        }
    } else {
        for (var k = 0u; k < 32u; k++) {
            let at = i * 32u + k;
            if (at < param(0u) && load_a(at_a(at)) != 0u) { bits |= 1u << k; }
        }
    }
    if (i + 1u < threads()) { set_words(i, bits); }
    set_before(i, countOneBits(bits));
}
