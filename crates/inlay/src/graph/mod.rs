//! Programs: operations recorded once on symbolic tensors, planned, and run many times.
//!
//! The funnel appends a node when one of its inputs is symbolic, so everything that runs eagerly
//! can be recorded, including gradient rules. A plan drops unneeded nodes, merges equal ones,
//! computes constants, and orders the rest. A run executes the steps of the plan one after the
//! other with the same operations.

mod attributes;
mod bind;
mod draw;
mod file;
mod jit;
mod join;
mod plan;
mod program;
mod protect;
mod run;
mod sizes;
mod text;
mod traces;

pub use jit::{Jit, Kinds, Trace, jit};
pub use plan::Plan;
pub use program::Program;
pub use protect::Written;
pub use traces::{Sizes, Traces};
