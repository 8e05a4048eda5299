//! Hooks: functions that backward calls with gradients.

use std::any::Any;
use std::sync::{Arc, Mutex};

use inlay_core::{Error, Result};

use super::node::Edge;
use crate::Tensor;
use crate::lock::lock;

/// What backward calls with a gradient. [`Tensor::register_hook`] makes it from a function;
/// bindings to other languages implement it.
#[doc(hidden)]
pub trait Hook: Any + Send + Sync {
    /// Takes the gradient, and may return a replacement.
    ///
    /// # Errors
    /// Backward fails with the error. [`Error::hook`] makes one from an error of another type.
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>>;
}

/// The hooks of a leaf or a node.
pub(crate) type Hooks = Mutex<Vec<Arc<dyn Hook>>>;

struct Function<F>(F);

impl<F> Hook for Function<F>
where
    F: Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
{
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>> {
        (self.0)(grad)
    }
}

impl Tensor {
    /// Registers a hook. Each backward calls it with the gradient of this tensor; a gradient that
    /// it returns is used instead.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[2])?.with_gradient()?;
    /// x.register_hook(|grad| grad.add(grad).map(Some))?;
    /// x.sum(None, false)?.backward(None, false)?;
    /// assert_eq!(x.grad().expect("it was asked for").to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A tensor that stops gradients.
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<()> {
        self.add_hook(Arc::new(Function(hook)))
    }

    /// Like [`Tensor::register_hook`], for a hook that [`Tensor::owned_hooks`] finds again.
    ///
    /// # Errors
    /// A tensor that stops gradients.
    #[doc(hidden)]
    pub fn add_hook(&self, hook: Arc<dyn Hook>) -> Result<()> {
        match self.edge() {
            Edge::None => {
                let (op, arg) = ("register_hook", "tensor");
                let (got, expected) =
                    ("one with stop_gradient".into(), "one that wants one".into());
                return Err(Error::Argument { op, arg, got, expected });
            }
            Edge::Leaf(leaf) => lock(&leaf.hooks).push(hook),
            Edge::Node(node) => {
                if let Some(node) = node.node() {
                    lock(&node.hooks).push(hook);
                }
            }
        }
        Ok(())
    }
}
