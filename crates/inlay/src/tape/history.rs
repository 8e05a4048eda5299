//! The gradient state of a tensor: whether it requires one, the operation that computed it, and the
//! gradient that it has collected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use inlay_core::{Error, Meta, Result};

use super::hook::Hooks;
use super::node::{Edge, Link};
use crate::Tensor;
use crate::lock::lock;

/// The gradient state of a tensor.
#[derive(Default)]
pub(crate) struct History {
    /// Whether the tensor is a leaf that requires a gradient.
    wants: AtomicBool,
    /// Whether `node` is set. It is read without the lock.
    computed: AtomicBool,
    pub(super) node: Mutex<Link>,
    leaf: OnceLock<Arc<Leaf>>,
    /// For a view: the version of its memory when it was made.
    view: Option<u64>,
}

/// The collected gradient of a leaf. Graphs hold this, not the elements of the leaf.
pub(crate) struct Leaf {
    pub(crate) meta: Meta,
    /// 16-bit floats are summed in 32 bits, so that the sum of many passes stays accurate.
    pub(crate) grad: Mutex<Option<Tensor>>,
    pub(crate) hooks: Hooks,
}

impl History {
    /// Returns the history of a result that was not recorded. `view` is the version of its memory
    /// if it is a view.
    #[inline]
    pub(crate) fn of_view(view: Option<u64>) -> Self {
        History { view, ..History::default() }
    }

    /// Returns the history of a result. `node` computed it, if it was recorded. `view` is the
    /// version of its memory if it is a view.
    #[inline]
    pub(crate) fn new(node: Option<Link>, view: Option<u64>) -> Self {
        let history = History::of_view(view);
        node.into_iter().for_each(|node| history.set_node(node));
        history
    }

    /// Whether nothing was ever set.
    pub(crate) fn is_unused(&self) -> bool {
        !self.is_tracked() && self.leaf.get().is_none() && self.view.is_none()
    }

    /// Whether operations on the tensor must be recorded.
    pub(crate) fn is_tracked(&self) -> bool {
        self.wants.load(Ordering::Relaxed) || self.computed.load(Ordering::Relaxed)
    }

    pub(crate) fn is_leaf(&self) -> bool {
        !self.computed.load(Ordering::Relaxed)
    }

    /// The version that the memory of a view had when it was made.
    pub(crate) fn view(&self) -> Option<u64> {
        self.view
    }

    pub(crate) fn set_node(&self, node: Link) {
        // A tensor that keeps its gradient keeps that of its new value after an in-place write.
        if let Some(leaf) = self.leaf.get()
            && self.node().node().is_some_and(|old| old.release(leaf))
            && let Some(new) = node.node()
        {
            new.retain(leaf);
        }
        self.computed.store(node.node().is_some(), Ordering::Relaxed);
        let old = std::mem::replace(&mut *lock(&self.node), node);
        drop(old);
    }

    pub(crate) fn node(&self) -> Link {
        lock(&self.node).clone()
    }

    /// Returns the collector of a leaf's gradient, if a gradient was ever wanted.
    pub(crate) fn collector(&self) -> Option<&Arc<Leaf>> {
        self.leaf.get()
    }
}

impl Tensor {
    /// The edge along which the gradient of this tensor flows.
    pub(crate) fn edge(&self) -> Edge {
        let history = self.history();
        let node = history.node();
        if node.node().is_some() {
            return Edge::Node(node);
        }
        if history.wants.load(Ordering::Relaxed) { Edge::Leaf(self.leaf()) } else { Edge::None }
    }

    /// Returns the same history, for a copy that replaces this tensor.
    pub(crate) fn history_again(&self) -> History {
        let history = History::new(Some(self.history().node()), None);
        if self.history().wants.load(Ordering::Relaxed) {
            history.wants.store(true, Ordering::Relaxed);
            history.leaf.get_or_init(|| self.leaf());
        }
        history
    }

    pub(crate) fn leaf(&self) -> Arc<Leaf> {
        let make = || {
            let (grad, hooks) = (Mutex::default(), Mutex::default());
            Arc::new(Leaf { meta: self.meta(), grad, hooks })
        };
        Arc::clone(self.history().leaf.get_or_init(make))
    }

    /// Whether gradients stop here. False if the tensor requires a gradient or was computed from
    /// one that does.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32]).with_gradient()?;
    /// assert!(!(&x + 1)?.stop_gradient());
    /// assert!(x.detach().stop_gradient());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn stop_gradient(&self) -> bool {
        !self.history().is_tracked()
    }

    /// Sets whether gradients stop here. A computed tensor that stops them drops its history.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32]);
    /// x.set_stop_gradient(false)?;
    /// assert!(!x.stop_gradient());
    /// assert!(Tensor::from([1]).set_stop_gradient(false).is_err());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A dtype that is neither float nor complex has no gradient.
    pub fn set_stop_gradient(&self, stop: bool) -> Result<()> {
        if !stop && !self.dtype().is_differentiable() {
            let (op, arg) = ("stop_gradient", "tensor");
            let expected = "a float or complex dtype";
            return Err(Error::DType { op, arg, got: self.dtype(), expected });
        }
        let history = self.history();
        if stop {
            history.set_node(Link::default());
        }
        history.wants.store(!stop && history.is_leaf(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the same tensor as a leaf that requires a gradient.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::zeros([2, 2], DType::F32)?.with_gradient()?;
    /// assert!(x.is_leaf() && !x.stop_gradient());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::set_stop_gradient`].
    pub fn with_gradient(self) -> Result<Self> {
        self.set_stop_gradient(false)?;
        Ok(self)
    }

    /// Whether the tensor is a leaf: no recorded operation computed it.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32]).with_gradient()?;
    /// assert!(x.is_leaf());
    /// assert!(!(&x + 1)?.is_leaf());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn is_leaf(&self) -> bool {
        self.history().is_leaf()
    }

    /// Forgets the collected gradient.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32]).with_gradient()?;
    /// x.sum(None, false)?.backward(None, false)?;
    /// x.clear_grad();
    /// assert!(x.grad().is_none());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn clear_grad(&self) {
        if let Some(leaf) = self.history().leaf.get() {
            *lock(&leaf.grad) = None;
        }
    }

    /// Returns the same elements without their history.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32]).with_gradient()?;
    /// let y = x.detach();
    /// assert!(y.stop_gradient());
    /// assert_eq!(y.data_ptr(), x.data_ptr());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn detach(&self) -> Tensor {
        match self.symbolic() {
            Some(symbolic) => Tensor::of_value(symbolic.view(), History::default()),
            None => self.again(History::of_view(Some(self.array().buffer.version()))),
        }
    }

    /// Makes [`Tensor::backward`] add to [`Tensor::grad`] of this tensor, although it was computed.
    /// A leaf that requires a gradient does so anyway.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[2])?.with_gradient()?;
    /// let y = x.multiply(&x)?;
    /// y.retain_grads()?;
    /// y.multiply(&y)?.sum(None, false)?.backward(None, false)?;
    /// assert_eq!(y.grad().expect("it was retained").to_vec::<f32>()?, [2.0, 8.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32]).with_gradient()?;
    /// x.register_hook(|grad| grad.multiply(10).map(Some))?;
    /// x.sum(None, false)?.backward(None, false)?;
    /// assert_eq!(x.grad().expect("it was collected").item::<f32>()?, 10.0);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A tensor that stops gradients.
    pub fn retain_grads(&self) -> Result<()> {
        match self.edge() {
            Edge::None => {
                let (op, arg) = ("retain_grads", "tensor");
                let (got, expected) =
                    ("one with stop_gradient".into(), "one that wants a gradient".into());
                Err(Error::Argument { op, arg, got, expected })
            }
            Edge::Leaf(_) => Ok(()),
            Edge::Node(link) => {
                link.node().into_iter().for_each(|node| node.retain(&self.leaf()));
                Ok(())
            }
        }
    }
}
