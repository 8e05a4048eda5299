//! Tests of the conversions from and to the types of other crates, each with its feature.

#[cfg(feature = "candle")]
mod candle;
mod lent;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "safetensors")]
mod safetensors;
#[cfg(feature = "serde")]
mod serde;
