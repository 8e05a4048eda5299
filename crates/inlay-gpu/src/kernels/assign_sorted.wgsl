// Writes the row of an entry if it is the last entry of its place in the sorted order.
fn keep(i: u32) -> bool {
    let at = i / param(0u);
    return at + 1u == param(1u) || load_keys(at + 1u) != load_keys(at);
}
fn address(i: u32) -> u32 { return at_to(load_keys(i / param(0u)) * param(0u) + i % param(0u)); }
fn value(i: u32) -> Stored {
    return load_u(at_u(load_order(i / param(0u)) * param(0u) + i % param(0u)));
}
