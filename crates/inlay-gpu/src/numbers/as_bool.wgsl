// Every byte that is not 0 is true.
fn num(w: u32) -> u32 { return select(0u, 1u, w != 0u); }
fn raw(n: u32) -> u32 { return n; }
