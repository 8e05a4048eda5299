// The last entry that names a place, plus 1.
fn work(i: u32) {
    table_max(load_keys(i), i + 1u);
}
