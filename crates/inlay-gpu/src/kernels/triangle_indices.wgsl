// Computes the row or the column of an element of the triangle. A binary search finds the row: the
// last one whose first element is not after this element.

// The number of elements in all rows before a row. Intermediate values may wrap, but the result
// fits.
fn elements_before(row: u32) -> u32 {
    let before = min(row, param(3u));
    let ramp = min(row - before, param(5u));
    let half = select(ramp * ((ramp - 1u) / 2u), (ramp / 2u) * (ramp - 1u), (ramp & 1u) == 0u);
    let steps = select(half, 0u - half, UPPER == 1u);
    return before * param(4u) + ramp * param(6u) + steps + (row - before - ramp) * param(7u);
}

fn value(i: u32) -> Stored {
    let is_row = i < param(1u);
    let element = select(i - param(1u), i, is_row);
    var low = 0u;
    var high = param(0u);
    while (high - low > 1u) {
        let middle = low + (high - low) / 2u;
        if (elements_before(middle) <= element) { low = middle; } else { high = middle; }
    }
    if (is_row) { return stored(low); }
    var first = 0u;
    if (UPPER == 1u && low >= param(3u)) { first = param(2u) + (low - param(3u)); }
    return stored(first + element - elements_before(low));
}
