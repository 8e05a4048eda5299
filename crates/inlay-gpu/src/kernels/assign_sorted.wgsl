// The last entry of a place in the sorted order.
fn keep(i: u32) -> bool {
    let at = i / own(0u);
    return at + 1u == own(1u) || load_keys(at + 1u) != load_keys(at);
}
fn place(i: u32) -> u32 { return at_to(load_keys(i / own(0u)) * own(0u) + i % own(0u)); }
fn value(i: u32) -> Word { return load_u(at_u(load_order(i / own(0u)) * own(0u) + i % own(0u))); }
