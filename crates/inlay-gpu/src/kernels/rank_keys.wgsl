// Sorts a few entries. The new position of an entry is the number of entries that sort before it.
fn work(i: u32) {
    let key = load_keys(i);
    var before = 0u;
    for (var k = 0u; k < threads(); k++) {
        let other = load_keys(k);
        if (other < key || (other == key && k < i)) { before++; }
    }
    set_to_keys(before, key);
    set_to_order(before, i);
}
