// One thread owns each word of the destination, which has several elements.

// Where an element is written.
fn here(i: u32) -> u32 { return first() * PER + i; }

fn work(at: u32) {
    var word = 0u;
    var written = 0u;
    for (var part = 0u; part < PER; part++) {
        let i = at * PER + part;
        if (i < elements() && keep(i)) {
            let mask = ((1u << BITS) - 1u) << (part * BITS);
            word |= (value(i) << (part * BITS)) & mask;
            written |= mask;
        }
    }
    if (written != 0xffffffffu) { word |= to_word(first() + at) & ~written; }
    set_to(first() + at, word);
}
