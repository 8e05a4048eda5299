// Folds one block of the elements of one result. Element k of the block goes to lane k % lanes, and
// the lanes are joined in pairs. This is the same tree as on the CPU.
fn work(i: u32) {
    let base = at_kept(i / param(0u));
    let start = (i % param(0u)) * BLOCK;
    let end = min(start + BLOCK, param(1u));
    if (start >= end) {
        set_partial(i, acc_raw(of_none()));
        return;
    }
    var lanes: array<A, LANES>;
    let count = select(LANES, FEW_LANES, end - start <= FEW_LANES);
    for (var lane = 0u; lane < count; lane++) { lanes[lane] = identity(); }
    for (var at = start; at < end; at++) {
        let lane = (at - start) % count;
        lanes[lane] = join(lanes[lane], lift(num(load_a(base + at_folded(at)))));
    }
    // The number of lanes is a power of 2.
    for (var left = count; left > 1u; left /= 2u) {
        for (var k = 0u; k < left / 2u; k++) { lanes[k] = join(lanes[2u * k], lanes[2u * k + 1u]); }
    }
    set_partial(i, acc_raw(lanes[0]));
}
