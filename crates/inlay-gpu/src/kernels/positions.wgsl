// Converts an index value to a position. Negative values count from the end of the axis. A value
// out of range fails the check.
fn value(i: u32) -> Stored {
    let size = param(1u);
    var at = pair_of(num(load_a(at_a(i))));
    if (SIGNED == 1u && (at.y >> 31u) == 1u) { at = pair_add(at, vec2<u32>(size, 0u)); }
    if (at.y != 0u || at.x >= size) {
        wrong_at(param(0u), i);
        return 0u;
    }
    return at.x;
}
