// Copies an element of the triangle. Elements outside of it become 0.
fn value(i: u32) -> Stored {
    let column = i % param(1u);
    let row = (i / param(1u)) % param(0u);
    let by = param(2u);
    // The diagonal is at column `row + by`, or at `row - by`, which may be negative.
    var above = false;
    var on = false;
    if (param(3u) == 0u) {
        above = column > row && column - row > by;
        on = column >= row && column - row == by;
    } else {
        above = column > row || row - column < by;
        on = column <= row && row - column == by;
    }
    let inside = select(!above || on, above || on, UPPER == 1u);
    if (inside) { return load_a(at_a(i)); }
    return Stored();
}
