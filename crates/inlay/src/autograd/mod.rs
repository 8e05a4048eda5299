//! Gradients: the funnel records what was done, and backward asks each operation for its rule.
//!
//! A tensor that was computed from tensors that want a gradient points to a [`Node`]; nodes point
//! to what they were computed from. Nothing points back, so a graph is freed with its results.

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
