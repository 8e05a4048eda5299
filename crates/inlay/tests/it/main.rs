//! All integration tests. They are one binary, so that only one is linked.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod cases;
mod data;
#[cfg(feature = "gpu")]
mod gpu;
mod gradients;
mod graph;
mod interop;
mod junk;
mod memory;
mod properties;
mod support;
mod sweep;
