//! All integration tests. They are one binary, so that only one is linked.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod cases;
#[cfg(feature = "gpu")]
mod gpu;
mod gradients;
mod graph;
mod jit;
mod junk;
mod memory;
mod pools;
#[cfg(not(feature = "gpu"))]
mod no_gpu;
mod properties;
mod support;
mod sweep;
