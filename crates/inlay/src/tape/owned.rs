//! The hooks that are dropped together with a tensor, for languages with a garbage collector.
//!
//! A hook may refer to its own tensor, which is a reference cycle. A collector can break it if it
//! knows which objects the tensor keeps alive. These are the hooks of the part of the graph that
//! belongs to this tensor only: everything that has one reference, on a path of such references.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::hook::{Hook, Hooks};
use super::node::{Edge, TapeNode};
use crate::Tensor;

impl Tensor {
    /// Calls `visit` with each hook that would be dropped if this handle were dropped now.
    ///
    /// Hooks that other tensors share are left out, so no hook is visited for two tensors. The
    /// answer is reliable only while no other thread uses tensors of the same graph.
    #[doc(hidden)]
    pub fn owned_hooks(&self, mut visit: impl FnMut(&Arc<dyn Hook>)) {
        walk(self, |hooks| {
            if let Some(hooks) = free(hooks) {
                hooks.iter().for_each(&mut visit);
            }
        });
    }

    /// Removes the hooks that [`Tensor::owned_hooks`] visits.
    #[doc(hidden)]
    pub fn drop_owned_hooks(&self) {
        let mut dropped = Vec::new();
        walk(self, |hooks| {
            if let Some(mut hooks) = free(hooks) {
                dropped.append(&mut hooks);
            }
        });
        // Dropping a hook may run code of another language, so it happens without a lock.
        drop(dropped);
    }
}

/// Locks a mutex if no one holds it. A collector must not wait.
fn free<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Calls `found` with the hooks of each leaf and node that only `tensor` keeps alive. A stack takes
/// the place of recursion, because chains of nodes are long.
fn walk(tensor: &Tensor, mut found: impl FnMut(&Hooks)) {
    let mut stack = Vec::new();
    enter(tensor, &mut stack, &mut found);
    while let Some(node) = stack.pop() {
        found(&node.hooks);
        for edge in &node.edges {
            match edge {
                Edge::None => {}
                Edge::Leaf(leaf) if Arc::strong_count(leaf) == 1 => found(&leaf.hooks),
                Edge::Leaf(_) => {}
                Edge::Node(link) => push_if_sole(link.node(), &mut stack),
            }
        }
        if let Some(saved) = free(&node.saved)
            && let Some(saved) = &*saved
        {
            let kept = saved.inputs.iter().flatten().chain(&saved.output);
            kept.for_each(|(tensor, _)| enter(tensor, &mut stack, &mut found));
        }
    }
}

fn enter(tensor: &Tensor, stack: &mut Vec<Arc<TapeNode>>, found: &mut impl FnMut(&Hooks)) {
    if !tensor.is_sole() {
        return;
    }
    let history = tensor.history();
    if let Some(leaf) = history.collector()
        && Arc::strong_count(leaf) == 1
    {
        found(&leaf.hooks);
    }
    if let Some(link) = free(&history.node) {
        push_if_sole(link.node(), stack);
    }
}

fn push_if_sole(node: Option<&Arc<TapeNode>>, stack: &mut Vec<Arc<TapeNode>>) {
    if let Some(node) = node.filter(|node| Arc::strong_count(node) == 1) {
        stack.push(Arc::clone(node));
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
mod tests {
    use crate::{DType, Tensor};

    fn leaf() -> Tensor {
        Tensor::ones(&[2], DType::F32).unwrap().with_gradient().unwrap()
    }

    fn owned(tensor: &Tensor) -> usize {
        let mut count = 0;
        tensor.owned_hooks(|_| count += 1);
        count
    }

    #[test]
    fn a_hook_belongs_to_a_tensor_while_no_other_can_call_it() {
        let x = leaf();
        x.register_hook(|_| Ok(None)).unwrap();
        assert_eq!(owned(&x), 1);
        let y = x.multiply(&x).unwrap();
        y.register_hook(|_| Ok(None)).unwrap();
        // The gradient of `y` calls the hook of `x`.
        assert_eq!((owned(&x), owned(&y)), (0, 1));
        let z = y.sum(None, false).unwrap();
        assert_eq!(owned(&y), 0);
        drop(y);
        assert_eq!(owned(&z), 1);
        let other = z.clone();
        assert_eq!(owned(&z), 0);
        drop((z, other));
        assert_eq!(owned(&x), 1);
        x.drop_owned_hooks();
        assert_eq!(owned(&x), 0);
    }

    #[test]
    fn the_hooks_of_a_long_chain_are_found_without_recursion() {
        let mut y = leaf();
        for _ in 0..100_000 {
            y = y.transpose(&[0]).unwrap();
        }
        y.register_hook(|_| Ok(None)).unwrap();
        assert_eq!(owned(&y.sum(None, false).unwrap()), 0);
        assert_eq!(owned(&y), 1);
    }
}
