//! What the tests share: plain arrays, the naive twins of the operations on them, and tensors laid
//! out in memory in every way that strides allow.

pub(crate) mod case;
pub(crate) mod device;
pub(crate) mod naive;
pub(crate) mod nd;
pub(crate) mod rng;
pub(crate) mod run;
pub(crate) mod tuning;

pub(crate) use nd::Nd;
pub(crate) use rng::Rng;
