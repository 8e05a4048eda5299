// Computes one column of the recurrence, row by row.
fn work(i: u32) {
    let rows = param(0u);
    let width = threads();
    for (var step = param(1u); step < param(2u); step++) {
        let row = select(step, rows - 1u - step, BACKWARDS == 1u);
        var x = num(load_a(at_a(row * width + i)));
        let before = load_p(row);
        if (before < rows) {
            let factor = num(load_c(at_c(row * width + i)));
            x = add(x, mul(factor, num(load_to(at_to(before * width + i)))));
        }
        put_to(at_to(row * width + i), raw(x));
    }
}
