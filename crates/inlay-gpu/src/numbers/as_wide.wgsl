// Elements that are what is computed with.
fn num(w: W) -> N { return wide_num(w); }
fn raw(n: N) -> W { return wide_raw(n); }
