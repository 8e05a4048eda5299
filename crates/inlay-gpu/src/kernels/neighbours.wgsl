// Stores the previous entry (backwards: the next one) in the sorted order if it names the same
// place, otherwise the number of entries.
fn address(i: u32) -> u32 { return at_to(load_order(i)); }
fn value(i: u32) -> Stored {
    let count = elements();
    let there = select(i > 0u, i + 1u < count, BACKWARDS == 1u);
    if (!there) { return Stored(count, 0u); }
    let beside = select(i - 1u, i + 1u, BACKWARDS == 1u);
    if (load_keys(beside) != load_keys(i)) { return Stored(count, 0u); }
    return Stored(load_order(beside), 0u);
}
