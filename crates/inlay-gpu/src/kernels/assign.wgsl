// Writes the row of an entry if no later entry names the same place.
fn keep(i: u32) -> bool {
    let entry = i / param(0u);
    return load_table(load_keys(entry)) == entry + 1u;
}
fn address(i: u32) -> u32 { return at_to(load_keys(i / param(0u)) * param(0u) + i % param(0u)); }
fn value(i: u32) -> Stored { return load_u(at_u(i)); }
