//! All integration tests, as one binary that is linked once.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod cases;
#[cfg(feature = "gpu")]
mod gpu;
mod gradients;
mod graph;
mod junk;
mod memory;
mod properties;
mod support;
mod sweep;
