// The update of entry `at` of the sorted order.
fn update(at: u32, column: u32) -> A {
    return lift(num(load_u(at_u(load_order(at) * param(0u) + column))));
}

// The first update of a place. With INCLUDE_SELF, it is joined to the old value.
fn first_of(i: u32, head: u32, column: u32) -> A {
    let first = update(head, column);
    if (INCLUDE_SELF == 1u) { return join(lift(num(old(i))), first); }
    return first;
}
