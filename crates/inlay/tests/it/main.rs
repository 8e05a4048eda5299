//! All integration tests. They are one binary, so that only one is linked.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod cases;
mod data;
mod documentation;
mod examples;
mod functions;
#[cfg(feature = "gpu")]
mod gpu;
mod gradients;
mod graph;
mod in_place;
mod interop;
mod jit;
mod junk;
mod memory;
mod natural;
#[cfg(not(feature = "gpu"))]
mod no_gpu;
mod pools;
mod properties;
mod support;
mod sweep;
