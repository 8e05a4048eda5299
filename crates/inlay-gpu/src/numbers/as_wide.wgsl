// Elements that are stored in the format in which they are computed.
fn num(w: W) -> N { return wide_num(w); }
fn raw(n: N) -> W { return wide_raw(n); }
