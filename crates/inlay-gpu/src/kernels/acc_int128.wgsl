// The accumulator for the mean of integers: a 128-bit sum.
alias A = M;
alias AW = M;
fn lift(n: N) -> A { return mean_lift(n); }
fn acc_num(w: AW) -> A { return w; }
fn acc_raw(a: A) -> AW { return a; }
