// An element on its side of the diagonal, or 0.
fn value(i: u32) -> Word {
    let column = i % own(1u);
    let row = (i / own(1u)) % own(0u);
    let by = own(2u);
    // The column of the diagonal is `row + by`, or `row - by`, which may be before the first.
    var above = false;
    var on = false;
    if (own(3u) == 0u) {
        above = column > row && column - row > by;
        on = column >= row && column - row == by;
    } else {
        above = column > row || row - column < by;
        on = column <= row && row - column == by;
    }
    let inside = select(!above || on, above || on, UPPER == 1u);
    if (inside) { return load_a(at_a(i)); }
    return Word();
}
