// Complex numbers whose parts are 32-bit floats.
alias F = f32;
alias W = vec2<u32>;
fn wide_num(w: W) -> N { return N(bitcast<f32>(w.x), bitcast<f32>(w.y)); }
fn wide_raw(n: N) -> W { return W(bitcast<u32>(n.x), bitcast<u32>(n.y)); }
fn part_is_nan(x: F) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn flip(x: F) -> F { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }
fn zero() -> N { return N(0.0, 0.0); }
fn one() -> N { return N(1.0, 0.0); }
