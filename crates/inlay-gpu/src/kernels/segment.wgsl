// Accumulates the entries of a place in the sorted order. The caller passes at most SPAN entries.

// The loop is unrolled by 16, because a software device limits the number of loop steps.
fn accumulate(start: A, head: u32, end: u32, column: u32) -> A {
    var acc = start;
    var at = head;
    while (at + 16u <= end) {
        acc = join(acc, update(at + 0u, column));
        acc = join(acc, update(at + 1u, column));
        acc = join(acc, update(at + 2u, column));
        acc = join(acc, update(at + 3u, column));
        acc = join(acc, update(at + 4u, column));
        acc = join(acc, update(at + 5u, column));
        acc = join(acc, update(at + 6u, column));
        acc = join(acc, update(at + 7u, column));
        acc = join(acc, update(at + 8u, column));
        acc = join(acc, update(at + 9u, column));
        acc = join(acc, update(at + 10u, column));
        acc = join(acc, update(at + 11u, column));
        acc = join(acc, update(at + 12u, column));
        acc = join(acc, update(at + 13u, column));
        acc = join(acc, update(at + 14u, column));
        acc = join(acc, update(at + 15u, column));
        at += 16u;
    }
    while (at < end) {
        acc = join(acc, update(at, column));
        at++;
    }
    return acc;
}

// Accumulates the first entries of a place, up to `end`.
fn begin(i: u32, head: u32, end: u32, column: u32) -> A {
    return accumulate(first_of(i, head, column), head + 1u, end, column);
}
