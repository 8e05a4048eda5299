// Signed integers of 16 bits.
fn num(w: u32) -> i32 { return bitcast<i32>(w << 16u) >> 16u; }
fn raw(n: i32) -> u32 { return bitcast<u32>(n) & 0xffffu; }
