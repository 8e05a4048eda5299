//! The tape: the record of all calls through which a gradient is propagated.
//!
//! A tensor that was computed from tensors that want a gradient points to a [`TapeNode`]. Nodes
//! point to the nodes of their inputs. There are no pointers in the other direction, so a graph is
//! freed with its results.

mod history;
mod hook;
mod mode;
mod node;
mod owned;
mod rule;

pub use hook::Hook;
pub use mode::{NoGrad, is_grad_enabled};

pub(crate) use history::{History, Leaf};
pub(crate) use hook::Hooks;
pub(crate) use node::{Edge, Link, Saved, TapeNode};
pub(crate) use rule::{Grads, Rule, Saves};
