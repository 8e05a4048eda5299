// An update of the sorted order.
fn update(at: u32, column: u32) -> A {
    return lift(num(load_u(at_u(load_order(at) * own(0u) + column))));
}
