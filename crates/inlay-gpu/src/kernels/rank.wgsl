// `is_true(i)` is element `i` of the mask. `rank(i)` is the number of true elements before it.
fn is_true(i: u32) -> bool { return ((load_words(i >> 5u) >> (i & 31u)) & 1u) == 1u; }
fn rank(i: u32) -> u32 {
    let lower = load_words(i >> 5u) & ((1u << (i & 31u)) - 1u);
    return load_before(i >> 5u) + countOneBits(lower);
}

// Whether element `i` is one of the first `param(0)` true elements.
fn is_selected(i: u32) -> bool { return is_true(i) && rank(i) < param(0u); }
