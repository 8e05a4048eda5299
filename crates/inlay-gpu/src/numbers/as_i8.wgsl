// Signed integers of 8 bits.
fn num(w: u32) -> i32 { return bitcast<i32>(w << 24u) >> 24u; }
fn raw(n: i32) -> u32 { return bitcast<u32>(n) & 0xffu; }
