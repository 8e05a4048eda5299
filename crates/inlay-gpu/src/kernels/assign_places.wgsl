// The row of the last entry that names a place, or the place's own.
fn element_of(i: u32) -> u32 { return i; }
fn keep(i: u32) -> bool { return stays(i) || load_table(i / own(0u)) != 0u; }
fn value(i: u32) -> Word {
    let last = load_table(i / own(0u));
    if (last == 0u) { return old(i); }
    return load_u(at_u((last - 1u) * own(0u) + i % own(0u)));
}
