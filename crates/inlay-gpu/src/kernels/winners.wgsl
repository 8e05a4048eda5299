// Stores for each place the last entry that names it, plus 1.
fn work(i: u32) {
    table_max(load_keys(i), i + 1u);
}
