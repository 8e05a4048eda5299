//! The nodes of the tape, one for each recorded operation, and the edges between them.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use inlay_core::{DType, Error, Meta, Result};
use smallvec::SmallVec;

use super::history::Leaf;
use super::hook::Hooks;
use super::rule::Saves;
use crate::Tensor;
use crate::lock::lock;
use crate::op::Checked;

/// One recorded operation.
pub(crate) struct TapeNode {
    pub(crate) op: Box<dyn Checked>,
    /// The edge along which the gradient of each input flows.
    pub(crate) edges: SmallVec<[Edge; 3]>,
    /// The dtype of the result.
    pub(crate) dtype: DType,
    /// The dtype and shape of each input.
    pub(crate) metas: SmallVec<[Meta; 3]>,
    /// The values that the rule reads. Backward frees them.
    pub(super) saved: Mutex<Option<Saved>>,
    pub(crate) hooks: Hooks,
    /// Where backward also adds the gradient of the result; see [`Tensor::retain_grads`]. The
    /// collector is that of the result, which may have been dropped since.
    retained: Mutex<Vec<Weak<Leaf>>>,
}

/// Values that a rule reads, each with the version that its memory had when it was saved.
#[derive(Default)]
pub(crate) struct Saved {
    pub(crate) inputs: SmallVec<[Option<(Tensor, u64)>; 3]>,
    /// The result without its history: the history is this node, so it would be a cycle.
    pub(crate) output: Option<(Tensor, u64)>,
}

impl Saved {
    /// Saves those of `count` inputs that the rule reads, and the result if the rule reads it.
    pub(crate) fn new(
        saves: Saves,
        count: usize,
        input: impl Fn(usize) -> Tensor,
        output: impl FnOnce() -> Tensor,
    ) -> Self {
        let versioned = |tensor: Tensor| {
            let version = tensor.array().buffer.version();
            (tensor, version)
        };
        Saved {
            inputs: (0..count).map(|k| saves.reads(k).then(|| versioned(input(k)))).collect(),
            output: saves.output.then(|| versioned(output())),
        }
    }
}

/// The destination of a gradient.
#[derive(Clone)]
pub(crate) enum Edge {
    /// The gradient is not needed.
    None,
    /// A leaf, which collects the gradient.
    Leaf(Arc<Leaf>),
    /// The operation that computed the input.
    Node(Link),
}

impl TapeNode {
    pub(crate) fn link(
        op: Box<dyn Checked>,
        edges: SmallVec<[Edge; 3]>,
        metas: SmallVec<[Meta; 3]>,
        dtype: DType,
        saved: Saved,
    ) -> Link {
        let saved = Mutex::new(Some(saved));
        let (hooks, retained) = (Mutex::default(), Mutex::default());
        Link(Some(Arc::new(TapeNode { op, edges, dtype, metas, saved, hooks, retained })))
    }

    /// Returns the saved values, or an error if they were freed.
    pub(crate) fn saved(&self) -> Result<SavedGuard<'_>> {
        let guard = lock(&self.saved);
        if guard.is_none() {
            return Err(Error::GraphFreed { op: self.op.name() });
        }
        Ok(SavedGuard(guard))
    }

    /// Frees the saved values.
    pub(crate) fn free(&self) {
        let freed = lock(&self.saved).take();
        drop(freed);
    }

    /// Makes backward add the gradient of the result to `leaf`, as long as `leaf` exists.
    pub(crate) fn retain(&self, leaf: &Arc<Leaf>) {
        self.release(leaf);
        lock(&self.retained).push(Arc::downgrade(leaf));
    }

    /// Undoes [`TapeNode::retain`]. Returns whether there was something to undo.
    pub(crate) fn release(&self, leaf: &Arc<Leaf>) -> bool {
        let mut retained = lock(&self.retained);
        let before = retained.len();
        retained.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(leaf)));
        retained.len() < before
    }

    /// The collectors to which backward adds the gradient of the result.
    pub(crate) fn retained(&self) -> Vec<Arc<Leaf>> {
        lock(&self.retained).iter().filter_map(Weak::upgrade).collect()
    }
}

/// Locked access to the saved values.
pub(crate) struct SavedGuard<'a>(MutexGuard<'a, Option<Saved>>);

impl std::ops::Deref for SavedGuard<'_> {
    type Target = Saved;

    fn deref(&self) -> &Saved {
        match &*self.0 {
            Some(saved) => saved,
            None => unreachable!("`TapeNode::saved` has checked it under the lock"),
        }
    }
}

impl fmt::Debug for TapeNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TapeNode").field("op", &self.op).finish_non_exhaustive()
    }
}

/// A reference to a node, or none.
///
/// Dropping the last reference to a long chain of nodes must not recurse: a node that is dropped
/// while another node is being dropped is put into a queue.
#[derive(Clone, Default)]
pub(crate) struct Link(Option<Arc<TapeNode>>);

impl Link {
    pub(crate) fn to(node: &Arc<TapeNode>) -> Self {
        Link(Some(Arc::clone(node)))
    }

    pub(crate) fn node(&self) -> Option<&Arc<TapeNode>> {
        self.0.as_ref()
    }
}

thread_local! {
    static DROPPED: RefCell<Option<Vec<Arc<TapeNode>>>> = const { RefCell::new(None) };
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(node) = self.0.take() else { return };
        if Arc::strong_count(&node) > 1 {
            return;
        }
        let waiting = DROPPED.try_with(|queue| match queue.try_borrow_mut() {
            Ok(mut queue) => match &mut *queue {
                Some(queue) => {
                    queue.push(Arc::clone(&node));
                    true
                }
                None => {
                    *queue = Some(Vec::new());
                    false
                }
            },
            Err(_) => false,
        });
        if !matches!(waiting, Ok(false)) {
            return;
        }
        // This is the outermost drop, so it empties the queue.
        let mut next = Some(node);
        while let Some(node) = next {
            drop(node);
            next = DROPPED.with(|queue| queue.borrow_mut().as_mut().and_then(Vec::pop));
        }
        DROPPED.with(|queue| *queue.borrow_mut() = None);
    }
}
