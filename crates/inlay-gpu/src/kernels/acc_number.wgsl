// The accumulator of the type in which the dtype is computed.
alias A = N;
alias AW = W;
fn lift(n: N) -> A { return n; }
fn acc_num(w: AW) -> A { return wide_num(w); }
fn acc_raw(a: A) -> AW { return wide_raw(a); }
