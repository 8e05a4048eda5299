// Accumulates the sum of a mean of integers in 128 bits.
alias A = M;
alias AW = M;
fn lift(n: N) -> A { return mean_lift(n); }
fn acc_num(w: AW) -> A { return w; }
fn acc_raw(a: A) -> AW { return a; }
