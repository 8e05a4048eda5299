//! Gradients: the funnel records operations, and backward calls the gradient rule of each.
//!
//! A tensor that was computed from tensors that require a gradient points to a [`Node`], and a node
//! points to the nodes of its inputs. There are no pointers in the other direction, so a graph is
//! freed with its results.

mod backward;
mod history;
mod mode;
mod node;
mod rule;

pub use backward::GradOptions;
pub use mode::{NoGrad, is_grad_enabled};

pub(crate) use history::History;
pub(crate) use node::{Node, Saved};
pub(crate) use rule::{Grads, Rule, Saves};
