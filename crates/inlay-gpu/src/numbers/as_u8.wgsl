// Unsigned integers of 8 bits.
fn num(w: u32) -> u32 { return w; }
fn raw(n: u32) -> u32 { return n & 0xffu; }
