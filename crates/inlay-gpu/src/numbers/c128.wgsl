// Complex numbers whose parts are 64-bit floats.
alias F = f64;
alias W = vec4<u32>;
fn from_words(w: vec2<u32>) -> F { return bitcast<f64>(u64(w.x) | (u64(w.y) << 32u)); }
fn to_words(x: F) -> vec2<u32> {
    let bits = bitcast<u64>(x);
    return vec2<u32>(u32(bits & 0xfffffffflu), u32(bits >> 32u));
}
fn wide_num(w: W) -> N { return N(from_words(w.xy), from_words(w.zw)); }
fn wide_raw(n: N) -> W { return W(to_words(n.x), to_words(n.y)); }
fn part_is_nan(x: F) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}
fn flip(x: F) -> F { return from_words(to_words(x) ^ vec2<u32>(0u, 0x80000000u)); }
fn zero() -> N { return N(0.0lf, 0.0lf); }
fn one() -> N { return N(1.0lf, 0.0lf); }
// Converts -0 to 0. Adding 0 would do the same, but compilers remove the addition.
fn plain(x: F) -> F {
    if ((bitcast<u64>(x) & 0x7ffffffffffffffflu) == 0lu) { return 0.0lf; }
    return x;
}
fn plain_zero(n: N) -> N { return N(plain(n.x), plain(n.y)); }
