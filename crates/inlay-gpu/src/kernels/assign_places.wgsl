// Writes to each place the row of the last entry that names it, or the old row.
fn element_of(i: u32) -> u32 { return i; }
fn keep(i: u32) -> bool { return copies_old() || load_table(i / param(0u)) != 0u; }
fn value(i: u32) -> Stored {
    let last = load_table(i / param(0u));
    if (last == 0u) { return old(i); }
    return load_u(at_u((last - 1u) * param(0u) + i % param(0u)));
}
