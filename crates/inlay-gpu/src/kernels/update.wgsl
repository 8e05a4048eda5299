// The update of an entry of the sorted order.
fn update(at: u32, column: u32) -> A {
    return lift(num(load_u(at_u(load_order(at) * param(0u) + column))));
}

// The first update of a place, after its old value if that takes part.
fn first_of(i: u32, head: u32, column: u32) -> A {
    let first = update(head, column);
    if (INCLUDE_SELF == 1u) { return join(lift(num(old(i))), first); }
    return first;
}
