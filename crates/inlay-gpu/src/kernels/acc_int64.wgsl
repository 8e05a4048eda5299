// The accumulator for sums and products of integers: 64 bits.
alias A = vec2<u32>;
alias AW = vec2<u32>;
fn lift(n: N) -> A { return pair_of(n); }
fn acc_num(w: AW) -> A { return w; }
fn acc_raw(a: A) -> AW { return a; }
