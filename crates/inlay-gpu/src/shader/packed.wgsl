// The driver for dense destinations whose elements are smaller than a word: one thread per word.

// The element of `to` that receives result `i`.
fn address(i: u32) -> u32 { return first_word() * PER_WORD + i; }

fn work(at: u32) {
    var word = 0u;
    var written = 0u;
    for (var part = 0u; part < PER_WORD; part++) {
        let i = at * PER_WORD + part;
        if (i < elements() && keep(i)) {
            let mask = ((1u << BITS) - 1u) << (part * BITS);
            word |= (value(i) << (part * BITS)) & mask;
            written |= mask;
        }
    }
    if (written != 0xffffffffu) { word |= to_word(first_word() + at) & ~written; }
    set_to(first_word() + at, word);
}
