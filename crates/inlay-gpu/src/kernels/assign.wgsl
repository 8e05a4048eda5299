// An entry's row, if it is the last that names its place.
fn keep(i: u32) -> bool {
    let entry = i / own(0u);
    return load_table(load_keys(entry)) == entry + 1u;
}
fn place(i: u32) -> u32 { return at_to(load_keys(i / own(0u)) * own(0u) + i % own(0u)); }
fn value(i: u32) -> Word { return load_u(at_u(i)); }
