// A block of what becomes one element, lane by lane.
fn work(i: u32) {
    let base = at_kept(i / own(0u));
    let start = (i % own(0u)) * BLOCK;
    let end = min(start + BLOCK, own(1u));
    if (start >= end) {
        set_partial(i, acc_raw(empty()));
        return;
    }
    var lanes: array<A, LANES>;
    let count = select(LANES, FEW_LANES, end - start <= FEW_LANES);
    for (var lane = 0u; lane < count; lane++) { lanes[lane] = nothing(); }
    for (var at = start; at < end; at++) {
        let lane = (at - start) % count;
        lanes[lane] = meet(lanes[lane], lift(num(load_a(base + at_summed(at)))));
    }
    // Neighbours meet until one is left; the number of lanes is a power of 2.
    for (var left = count; left > 1u; left /= 2u) {
        for (var k = 0u; k < left / 2u; k++) { lanes[k] = meet(lanes[2u * k], lanes[2u * k + 1u]); }
    }
    set_partial(i, acc_raw(lanes[0]));
}
