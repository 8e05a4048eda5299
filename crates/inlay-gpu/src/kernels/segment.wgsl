// Very many entries of a place, in the sorted order, joined one after the other. No thread takes more
// at a time than SPAN: what a place has beyond is done in parts, a kernel each.

// Sixteen at a time, for steps of a loop are what is counted.
fn accumulate(start: A, head: u32, end: u32, column: u32) -> A {
    var acc = start;
    var at = head;
    while (at + 16u <= end) {
        acc = meet(acc, update(at + 0u, column));
        acc = meet(acc, update(at + 1u, column));
        acc = meet(acc, update(at + 2u, column));
        acc = meet(acc, update(at + 3u, column));
        acc = meet(acc, update(at + 4u, column));
        acc = meet(acc, update(at + 5u, column));
        acc = meet(acc, update(at + 6u, column));
        acc = meet(acc, update(at + 7u, column));
        acc = meet(acc, update(at + 8u, column));
        acc = meet(acc, update(at + 9u, column));
        acc = meet(acc, update(at + 10u, column));
        acc = meet(acc, update(at + 11u, column));
        acc = meet(acc, update(at + 12u, column));
        acc = meet(acc, update(at + 13u, column));
        acc = meet(acc, update(at + 14u, column));
        acc = meet(acc, update(at + 15u, column));
        at += 16u;
    }
    while (at < end) {
        acc = meet(acc, update(at, column));
        at++;
    }
    return acc;
}

// What the first entries make, up to `end`.
fn begin(i: u32, head: u32, end: u32, column: u32) -> A {
    var acc = update(head, column);
    if (OWN == 1u) { acc = meet(lift(num(old(i))), acc); }
    return accumulate(acc, head + 1u, end, column);
}
