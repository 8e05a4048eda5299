//! Backward: walks the tape from results to leaves. A node is processed after all of its users.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use inlay_core::{DType, Dim, Dims, Error, Result, ShapeText, expect_shape};

use smallvec::SmallVec;

use crate::Tensor;
use crate::declare::Operation;
use crate::lock::lock;
use crate::ops::{BACKWARD, GRAD};
use crate::tape::{Edge, Hooks, Leaf, NoGrad, Rule, TapeNode, is_grad_enabled};

/// Options of [`Tensor::grad_of`].
///
/// ```
/// use inlay::GradOptions;
///
/// let twice = GradOptions { create_graph: true, ..GradOptions::default() };
/// assert!(!twice.allow_unused);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GradOptions {
    /// Record the computation of the gradients, so that they can be differentiated in turn.
    pub create_graph: bool,
    /// Keep the saved values, so that backward can run again. `create_graph` implies this.
    pub retain_graph: bool,
    /// Return `None` instead of an error for an input on which the outputs don't depend.
    pub allow_unused: bool,
}

/// A sum of gradients. 16-bit floats are summed in 32 bits.
struct Sum {
    total: Tensor,
    parts: usize,
}

impl Sum {
    fn add(slot: &mut Option<Sum>, part: Tensor) -> Result<()> {
        *slot = Some(match slot.take() {
            None => Sum { total: part, parts: 1 },
            Some(Sum { total, parts: 1 }) => {
                Sum { total: total.widened()?.add(&part.widened()?)?, parts: 2 }
            }
            Some(Sum { total, parts }) => {
                Sum { total: total.add(&part.widened()?)?, parts: parts + 1 }
            }
        });
        Ok(())
    }
}

/// The state of a node during one backward.
struct Visit {
    node: Arc<TapeNode>,
    /// The number of users that have not been processed yet.
    waiting: usize,
    sum: Option<Sum>,
}

type Address = usize;

#[derive(Default)]
struct Pass {
    /// The leaves and nodes whose gradients are wanted. `None` means all leaves.
    targets: Option<HashSet<Address>>,
    /// The nodes on a path to a target.
    nodes: HashMap<Address, Visit>,
    leaves: HashMap<Address, (Arc<Leaf>, Option<Sum>)>,
    /// Gradients of the nodes that were requested, by address.
    caught: HashMap<Address, Option<Tensor>>,
    /// Gradients of computed tensors that keep theirs.
    retained: Vec<(Arc<Leaf>, Tensor)>,
}

fn address<T>(of: &Arc<T>) -> Address {
    Arc::as_ptr(of).cast::<()>() as Address
}

impl Pass {
    /// Finds the nodes on the paths from `roots` to the targets, and counts their users.
    fn explore(&mut self, roots: &[(Edge, Tensor)]) {
        let mut seen = HashSet::new();
        // A node is visited twice: before and after the nodes that it depends on.
        let mut stack: Vec<(Edge, bool)> =
            roots.iter().map(|(edge, _)| (edge.clone(), false)).collect();
        while let Some((edge, below_known)) = stack.pop() {
            let Edge::Node(link) = &edge else { continue };
            let Some(node) = link.node() else { continue };
            if below_known {
                let target = self.is_target(address(node));
                if target || node.edges.iter().any(|edge| self.wants(edge)) {
                    let visit = Visit { node: Arc::clone(node), waiting: 0, sum: None };
                    self.nodes.insert(address(node), visit);
                }
            } else if seen.insert(address(node)) {
                let below: Vec<_> = node.edges.iter().map(|edge| (edge.clone(), false)).collect();
                stack.push((edge, true));
                stack.extend(below);
            }
        }
        let users = self.nodes.values().flat_map(|visit| visit.node.edges.iter().cloned());
        let edges: Vec<Edge> = users.chain(roots.iter().map(|(edge, _)| edge.clone())).collect();
        for edge in edges {
            if let Edge::Node(link) = edge
                && let Some(visit) = link.node().and_then(|node| self.nodes.get_mut(&address(node)))
            {
                visit.waiting += 1;
            }
        }
    }

    fn is_target(&self, address: Address) -> bool {
        self.targets.as_ref().is_some_and(|targets| targets.contains(&address))
    }

    /// Whether the gradient of this edge is wanted. For a node, all nodes that it depends on must
    /// have been visited.
    fn wants(&self, edge: &Edge) -> bool {
        match edge {
            Edge::None => false,
            Edge::Leaf(leaf) => self.targets.is_none() || self.is_target(address(leaf)),
            Edge::Node(link) => {
                link.node().is_some_and(|node| self.nodes.contains_key(&address(node)))
            }
        }
    }

    fn give(&mut self, edge: &Edge, grad: Option<Tensor>) -> Result<Option<Arc<TapeNode>>> {
        match edge {
            Edge::None => Ok(None),
            Edge::Leaf(leaf) => {
                let entry = self.leaves.entry(address(leaf));
                let (_, sum) = entry.or_insert_with(|| (Arc::clone(leaf), None));
                if let Some(grad) = grad {
                    Sum::add(sum, grad)?;
                }
                Ok(None)
            }
            Edge::Node(link) => {
                let Some(node) = link.node() else { return Ok(None) };
                let Some(visit) = self.nodes.get_mut(&address(node)) else { return Ok(None) };
                if let Some(grad) = grad {
                    Sum::add(&mut visit.sum, grad)?;
                }
                visit.waiting -= 1;
                Ok((visit.waiting == 0).then(|| Arc::clone(node)))
            }
        }
    }

    fn run(&mut self, roots: Vec<(Edge, Tensor)>, keep: bool) -> Result<()> {
        self.explore(&roots);
        let mut ready = Vec::new();
        for (edge, grad) in roots {
            ready.extend(self.give(&edge, Some(grad))?);
        }
        while let Some(node) = ready.pop() {
            let sum = self.nodes.get_mut(&address(&node)).and_then(|visit| visit.sum.take());
            let grad = match sum {
                Some(sum) => Some(finish(sum, &node.hooks, node.dtype)?),
                None => None,
            };
            if let Some(slot) = self.caught.get_mut(&address(&node)) {
                slot.clone_from(&grad);
            }
            if let (None, Some(grad)) = (&self.targets, &grad) {
                let leaves = node.retained().into_iter();
                self.retained.extend(leaves.map(|leaf| (leaf, grad.clone())));
            }
            let wanted: SmallVec<[bool; 3]> =
                node.edges.iter().map(|edge| self.wants(edge)).collect();
            if !wanted.contains(&true) {
                continue;
            }
            let grads = match &grad {
                Some(upstream) => {
                    let saved = node.saved()?;
                    let rule = Rule { node: &node, saved: &saved, upstream, wanted: &wanted };
                    node.op.grad(&rule)?
                }
                None => node.edges.iter().map(|_| None).collect(),
            };
            if !keep {
                node.free();
            }
            for (edge, grad) in node.edges.iter().zip(grads) {
                if self.wants(edge) {
                    ready.extend(self.give(edge, grad)?);
                }
            }
        }
        Ok(())
    }
}

/// Returns the summed gradient in the tensor's dtype, after the hooks.
fn finish(sum: Sum, hooks: &Hooks, dtype: DType) -> Result<Tensor> {
    let mut grad = sum.total.narrowed(dtype)?;
    // Cloned, because a hook may register another hook.
    let hooks = lock(hooks).clone();
    for hook in hooks {
        if let Some(other) = hook.call(&grad)? {
            other.meta().expect_dtype_of("hook", "gradient", &grad.meta(), "tensor")?;
            expect_shape("hook", "gradient", &other.meta().shape, &grad.meta().shape)?;
            grad = other.beside("hook", "gradient", &grad, "tensor")?;
        }
    }
    Ok(grad)
}

/// Returns the gradient of an output: as given, or 1 for a single element.
fn seed(operation: &'static Operation, output: &Tensor, given: Option<&Tensor>) -> Result<Tensor> {
    let op = operation.name;
    match given {
        Some(grad) => {
            grad.meta().expect_dtype_of(op, "grad", &output.meta(), "output")?;
            expect_shape(op, "grad", &grad.meta().shape, &output.meta().shape)?;
            grad.beside(op, "grad", output, "output")
        }
        None if output.meta().numel().is_none_or(|count| count == 1) => {
            // With open sizes, this is checked when the program runs.
            let single: Dims = Dims::from_elem(Dim::Known(1), output.rank());
            let ones = output.filled(&output.dims(), true, output.dtype())?;
            ones.fitting(operation, "output", &single)
        }
        None => {
            let got = format!("left out for a tensor of {} elements", output.numel());
            let expected = "a gradient of its shape".into();
            Err(Error::Argument { op, arg: "grad", got, expected })
        }
    }
}

fn expect_tracked(op: &'static str, output: &Tensor) -> Result<Edge> {
    match output.edge() {
        Edge::None => {
            let got = "a tensor with stop_gradient".into();
            let expected = "one computed from a tensor that wants a gradient".into();
            Err(Error::Argument { op, arg: "output", got, expected })
        }
        edge => Ok(edge),
    }
}

impl Tensor {
    /// Returns the gradient that backward has collected for this leaf, or for a tensor that
    /// retains its gradient.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0]).with_gradient()?;
    /// assert!(x.grad().is_none());
    /// (&x * 3)?.sum(None, false)?.backward(None, false)?;
    /// assert_eq!(x.grad().expect("it was collected").to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn grad(&self) -> Option<Tensor> {
        let collected = lock(&self.history().collector()?.grad).clone();
        // The cast fails only if memory is exhausted. Then no gradient is returned.
        collected.and_then(|grad| grad.narrowed(self.dtype()).ok())
    }

    /// Sets or removes the collected gradient.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0]).with_gradient()?;
    /// x.set_grad(Some(&Tensor::from([10.0f32, 10.0])))?;
    /// x.sum(None, false)?.backward(None, false)?;
    /// assert_eq!(x.grad().expect("it was set").to_vec::<f32>()?, [11.0, 11.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A gradient of another dtype or shape.
    pub fn set_grad(&self, grad: Option<&Tensor>) -> Result<()> {
        let brought = grad.map(|grad| grad.beside("grad", "grad", self, "tensor")).transpose()?;
        let grad = brought.as_ref();
        if let Some(grad) = grad {
            grad.meta().expect_dtype_of("grad", "grad", &self.meta(), "tensor")?;
            let (got, want) = (grad.meta(), self.meta());
            inlay_core::expect_shape("grad", "grad", &got.shape, &want.shape)?;
        }
        *lock(&self.leaf().grad) = grad.map(Tensor::widened).transpose()?;
        Ok(())
    }

    /// Adds to the gradient of every leaf that this tensor was computed from, and of every tensor
    /// in between that retains its gradient.
    ///
    /// `grad` is the gradient of this tensor; the default is 1 for a single element. The saved
    /// values of the graph are freed unless `retain_graph` is set.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[2])?.with_gradient()?;
    /// x.multiply(&x)?.sum(None, false)?.backward(None, false)?;
    /// assert_eq!(x.grad().expect("it was asked for").to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A tensor without history, a gradient of another shape or dtype, a saved value that was
    /// written in place since, or a graph that was freed. In case of an error no leaf is changed.
    pub fn backward(&self, grad: Option<&Tensor>, retain_graph: bool) -> Result<()> {
        let op = "backward";
        let edge = expect_tracked(op, self)?;
        let seed = seed(&BACKWARD, self, grad)?;
        let _off = NoGrad::set(false);
        let mut pass = Pass::default();
        pass.run(vec![(edge, seed)], retain_graph)?;
        let mut parts = Vec::new();
        for (leaf, sum) in pass.leaves.into_values() {
            let Some(sum) = sum else { continue };
            let part = finish(sum, &leaf.hooks, leaf.meta.dtype)?;
            parts.push((leaf, part));
        }
        for (leaf, part) in parts.into_iter().chain(pass.retained) {
            // Under the lock, because another thread may add to the same leaf.
            let mut collected = lock(&leaf.grad);
            *collected = Some(match &*collected {
                Some(old) => old.add(&part.widened()?)?,
                // A rule may return a view of its argument. The collected gradient must have its
                // own memory.
                None => part.copy()?.widened()?,
            });
        }
        Ok(())
    }

    /// Returns the gradients of `outputs` with respect to `inputs`. The gradients that leaves have
    /// collected are not changed. `seeds` are the gradients of the outputs, as in
    /// [`Tensor::backward`].
    ///
    /// ```
    /// # use inlay::{GradOptions, Tensor};
    /// let x = Tensor::from([1.0f32, 2.0]).with_gradient()?;
    /// let y = (&x * &x)?.sum(None, false)?;
    /// let grads = Tensor::grad_of(&[&y], &[&x], &[], GradOptions::default())?;
    /// assert_eq!(grads[0].as_ref().expect("y depends on x").to_vec::<f32>()?, [2.0, 4.0]);
    /// assert!(x.grad().is_none());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::backward`]; also inputs on which the outputs don't depend, unless
    /// this is allowed.
    pub fn grad_of(
        outputs: &[&Tensor],
        inputs: &[&Tensor],
        seeds: &[Option<&Tensor>],
        options: GradOptions,
    ) -> Result<Vec<Option<Tensor>>> {
        let op = "grad";
        if !seeds.is_empty() && seeds.len() != outputs.len() {
            let (got, expected) = (seeds.len().to_string(), format!("{}", outputs.len()));
            return Err(Error::Argument { op, arg: "grad_outputs", got, expected });
        }
        let roots = outputs.iter().enumerate().map(|(k, output)| {
            let given = seeds.get(k).copied().flatten();
            Ok((expect_tracked(op, output)?, seed(&GRAD, output, given)?))
        });
        let roots = roots.collect::<Result<Vec<_>>>()?;
        let mut pass = Pass::default();
        let targets: Vec<Edge> = inputs.iter().map(|input| input.edge()).collect();
        let mut wanted = HashSet::new();
        for target in &targets {
            match target {
                Edge::None => {}
                Edge::Leaf(leaf) => drop(wanted.insert(address(leaf))),
                Edge::Node(link) => {
                    if let Some(node) = link.node() {
                        wanted.insert(address(node));
                        pass.caught.insert(address(node), None);
                    }
                }
            }
        }
        pass.targets = Some(wanted);
        let keep = options.retain_graph || options.create_graph;
        {
            let _mode = NoGrad::set(options.create_graph && is_grad_enabled());
            pass.run(roots, keep)?;
        }
        let mut found = Vec::new();
        for (target, input) in targets.iter().zip(inputs) {
            let grad = match target {
                Edge::None => None,
                Edge::Leaf(leaf) => match pass.leaves.get_mut(&address(leaf)) {
                    Some((leaf, Some(sum))) => {
                        let sum = Sum { total: sum.total.clone(), parts: sum.parts };
                        let _mode = NoGrad::set(options.create_graph && is_grad_enabled());
                        Some(finish(sum, &leaf.hooks, leaf.meta.dtype)?)
                    }
                    _ => None,
                },
                Edge::Node(link) => {
                    let node = link.node().map(address);
                    node.and_then(|node| pass.caught.get(&node).cloned()).flatten()
                }
            };
            if grad.is_none() && !options.allow_unused {
                let shape = ShapeText::of(&input.dims());
                let got = format!("one of shape {shape} that no output depends on");
                let expected = "inputs of the outputs; or pass allow_unused".into();
                return Err(Error::Argument { op, arg: "inputs", got, expected });
            }
            found.push(grad);
        }
        Ok(found)
    }
}
