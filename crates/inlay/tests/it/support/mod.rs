//! Code that the tests share: plain arrays, naive implementations of the operations, and tensors
//! with random strides.

pub(crate) mod case;
pub(crate) mod device;
pub(crate) mod naive;
pub(crate) mod nd;
pub(crate) mod rng;
pub(crate) mod run;
pub(crate) mod tuning;

pub(crate) use nd::Nd;
pub(crate) use rng::Rng;
