// The row and the column of an entry: the last row that begins at it or before.

// Entries of all rows before a row. What overflows on the way wraps, and back.
fn entries_before(row: u32) -> u32 {
    let before = min(row, own(3u));
    let ramp = min(row - before, own(5u));
    let half = select(ramp * ((ramp - 1u) / 2u), (ramp / 2u) * (ramp - 1u), (ramp & 1u) == 0u);
    let steps = select(half, 0u - half, UPPER == 1u);
    return before * own(4u) + ramp * own(6u) + steps + (row - before - ramp) * own(7u);
}

fn value(i: u32) -> Word {
    let is_row = i < own(1u);
    let entry = select(i - own(1u), i, is_row);
    var low = 0u;
    var high = own(0u);
    while (high - low > 1u) {
        let middle = low + (high - low) / 2u;
        if (entries_before(middle) <= entry) { low = middle; } else { high = middle; }
    }
    if (is_row) { return word(low); }
    var first = 0u;
    if (UPPER == 1u && low >= own(3u)) { first = own(2u) + (low - own(3u)); }
    return word(first + entry - entries_before(low));
}
