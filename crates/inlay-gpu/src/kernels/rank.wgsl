// Whether an element of the mask is true, and how many true elements are before it.
fn is_true(i: u32) -> bool { return ((load_words(i >> 5u) >> (i & 31u)) & 1u) == 1u; }
fn rank(i: u32) -> u32 {
    let lower = load_words(i >> 5u) & ((1u << (i & 31u)) - 1u);
    return load_before(i >> 5u) + countOneBits(lower);
}

// Whether an element is true and among the first `param(0)` true elements.
fn is_selected(i: u32) -> bool { return is_true(i) && rank(i) < param(0u); }
