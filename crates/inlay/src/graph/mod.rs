//! Programs: operations recorded once on symbolic tensors, planned, and run many times.
//!
//! The funnel appends a node when one of its inputs is symbolic, so everything that runs eagerly can
//! be recorded, gradient rules among it. A plan drops, merges, folds and orders the nodes; a run takes
//! the plan's steps one after the other, through the same operations.

mod bind;
mod draw;
mod file;
mod jit;
mod join;
mod plan;
mod program;
mod run;
mod text;

pub use jit::{Jit, jit};
pub use plan::Plan;
pub use program::Program;
