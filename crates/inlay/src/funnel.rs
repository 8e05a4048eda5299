//! The one way into every operation: infer, run, record; out of place or in place.

use std::fmt;

use inlay_core::{Dim, Dims, Error, Meta, Result};
use smallvec::SmallVec;

use crate::array::Array;
use crate::autograd::{Grads, History, Node, Rule, Saved, Saves, is_grad_enabled};
use crate::ops::Operation;
use crate::placement::{Copies, place};
use crate::{Device, Tensor, device, graph};

/// An operation: a small value that says what it accepts and what it does.
///
/// The rules about shapes and dtypes live in `infer` alone and work on sizes that are not known
/// yet; `run` is called only with what `infer` has accepted.
pub(crate) trait Op: fmt::Debug + Send + Sync {
    /// The name that users call it by, and that its errors begin with.
    fn name(&self) -> &'static str;

    /// What its first argument is called, for errors about an in-place target.
    fn target(&self) -> &'static str {
        "x"
    }

    /// What its argument `k` is called, for errors about devices.
    fn arg(&self, k: usize) -> String {
        if k == 0 { self.target().into() } else { format!("input {k}") }
    }

    /// Dtype and shape of the result, or why there is none.
    fn infer(&self, inputs: &[Meta]) -> Result<Meta>;

    /// The result. With [`Out::InPlace`] it is written into the first input. Whatever can fail
    /// fails before the first write.
    fn run(&self, inputs: &[&Array], out: Out) -> Result<Array>;

    /// Whether it can write its result into its first input.
    fn writes(&self) -> bool {
        false
    }

    /// Whether its result can be a view of its first input.
    fn is_view(&self) -> bool {
        false
    }

    /// The sizes among its attributes. In a program they may be symbols; when it runs they are
    /// known.
    fn sizes(&self) -> Dims {
        Dims::new()
    }

    /// The same with other sizes in their place; `None` for an operation without, or for another
    /// number of them.
    fn with_sizes(&self, _sizes: &[Dim]) -> Option<Operation> {
        None
    }

    /// Which values its gradient rule reads.
    fn saves(&self) -> Saves {
        Saves::NOTHING
    }

    /// Whether it has a gradient at all; comparisons and indices don't.
    fn is_differentiable(&self) -> bool {
        true
    }

    /// The gradients of its inputs, made of operations, so that they have gradients themselves.
    fn grad(&self, rule: &Rule<'_>) -> Result<Grads>;
}

/// Where a result goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    /// Into fresh memory, or for a view nowhere.
    Fresh,
    /// Into the first input, which is writable, overlaps itself nowhere, and no other input.
    InPlace,
}

impl Out {
    /// Where to write a changed `x`, and where the unchanged one is to be taken from when that is
    /// somewhere else.
    pub(crate) fn of<'x>(
        self,
        op: &'static str,
        x: &'x Array,
    ) -> Result<(Array, Option<&'x Array>)> {
        match self {
            Out::Fresh => Ok((x.new_like(op)?, Some(x))),
            Out::InPlace => Ok((x.clone(), None)),
        }
    }
}

type Metas = SmallVec<[Meta; 3]>;

/// Runs `op` on `inputs`; the result is fresh, or a view for operations that make views. On symbolic
/// tensors it becomes a node of their program.
#[track_caller]
pub(crate) fn apply<O: Op + Into<Operation> + 'static>(
    op: O,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    match program_of(&op, inputs) {
        Some(program) => graph::append(&program, op, inputs),
        None => apply_eager(None, op, inputs),
    }
}

/// The program that a call belongs to: that of a symbolic input, or, if all inputs are constants of
/// it, that of a size.
#[inline]
fn program_of<O: Op>(op: &O, inputs: &[&Tensor]) -> Option<graph::Program> {
    match inputs.iter().find_map(|input| input.symbolic()) {
        Some(symbolic) => Some(symbolic.program().clone()),
        None => graph::program_of(&op.sizes()),
    }
}

/// Runs `op` on tensors with elements: on `device` if there is one, else where they are.
pub(crate) fn apply_eager<O: Op + 'static>(
    device: Option<Device>,
    op: O,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    let mut metas = Metas::new();
    add_metas(&mut metas, inputs);
    op.infer(&metas)?;
    let record = is_recorded(&op, inputs)?;
    let device = place(&op, inputs, device, Out::Fresh)?;
    let mut copies = Copies::default();
    let result = device::scoped(device, inputs.len(), || {
        copies.move_along(op.name(), device, inputs)?;
        op.run(&copies.read_from(inputs), Out::Fresh)
    })?;
    let first = copies.get(0).or_else(|| inputs.first().map(|first| first.array()));
    let is_view = first.is_some_and(|first| result.buffer.same_as(&first.buffer));
    let view = is_view.then(|| result.buffer.version());
    if !record || !result.dtype.is_differentiable() {
        return Ok(match view {
            Some(version) => Tensor::with_history(result, History::of_view(version)),
            None => Tensor::from_array(result),
        });
    }
    let mut saved = save(op.saves(), inputs, &copies);
    saved.output = op.saves().output.then(|| saved_output(&result));
    let edges = inputs.iter().map(|input| input.edge()).collect();
    let node = Node::link(Box::new(op), edges, metas, result.dtype, saved);
    Ok(Tensor::with_history(result, History::of_node(node, view)))
}

/// As [`apply`], where `beside` is: in its program if it is symbolic, else on its device, whatever the
/// inputs are.
#[track_caller]
pub(crate) fn apply_beside<O: Op + Into<Operation> + 'static>(
    beside: &Tensor,
    op: O,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    if let Some(symbolic) = beside.symbolic() {
        return graph::append(symbolic.program(), op, inputs);
    }
    apply_on(beside.device(), op, inputs)
}

/// As [`apply`], on a device.
#[track_caller]
pub(crate) fn apply_on<O: Op + Into<Operation> + 'static>(
    device: Device,
    op: O,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    match program_of(&op, inputs) {
        Some(program) => graph::append(&program, op, inputs),
        None => apply_eager(Some(device), op, inputs),
    }
}

/// Runs `op` on `target` and `inputs`, and writes the result into `target`.
///
/// When it fails, `target` is what it was. Inputs that overlap the target in memory are copied
/// first, so that they are read as they were.
#[track_caller]
pub(crate) fn apply_in_place<O: Op + Into<Operation> + 'static>(
    op: O,
    target: &Tensor,
    inputs: &[&Tensor],
) -> Result<()> {
    let (name, arg) = (op.name(), op.target());
    let mut all: SmallVec<[&Tensor; 4]> = SmallVec::new();
    all.push(target);
    inputs.iter().for_each(|tensor| all.push(tensor));
    if all.iter().any(|tensor| tensor.is_symbolic()) {
        return graph::append_in_place(op, target, &all);
    }
    let mut metas = Metas::new();
    add_metas(&mut metas, &all);
    let result = op.infer(&metas)?;
    debug_assert_eq!(result, metas[0], "{name} keeps dtype and shape");
    target.array().expect_target(name, arg)?;
    let record = is_recorded(&op, &all)?;
    if record && target.history().view().is_some() {
        return Err(Error::InPlaceView { op: name, arg });
    }
    if record && target.history().is_leaf() && target.history().is_tracked() {
        return Err(Error::InPlaceLeaf { op: name, arg });
    }

    let device = place(&op, &all, None, Out::InPlace)?;
    let saves = op.saves();
    let edges =
        if record { all.iter().map(|tensor| tensor.edge()).collect() } else { SmallVec::new() };
    let mut copies = Copies::default();
    let result = device::scoped(device, all.len(), || {
        copies.move_along(name, device, &all)?;
        // What overlaps the target is read from a copy, and so is what the rule reads of the old
        // target.
        let mut before = None;
        for (k, tensor) in all.iter().enumerate() {
            match k {
                0 if record && saves.inputs & 1 == 1 => {
                    before = Some(device::to_contiguous(name, tensor.array())?);
                }
                0 => {}
                _ if target.array().overlaps(tensor.array()) => {
                    copies.add(k, device::to_contiguous(name, tensor.array())?);
                }
                _ => {}
            }
        }
        let result = op.run(&copies.read_from(&all), Out::InPlace)?;
        before.into_iter().for_each(|before| copies.add(0, before));
        Ok(result)
    })?;
    target.array().buffer.count_write(record);
    if record {
        let mut saved = save(saves, &all, &copies);
        saved.output = saves.output.then(|| saved_output(&result));
        let node = Node::link(Box::new(op), edges, metas, result.dtype, saved);
        target.history().set_node(node);
    }
    Ok(())
}

// Pushed one by one, where they stay: to collect them takes several times as long, and to return them
// moves what was just written.
#[inline]
fn add_metas(metas: &mut Metas, tensors: &[&Tensor]) {
    tensors.iter().for_each(|tensor| metas.push(tensor.array().meta()));
}

/// Whether the call is to be recorded.
fn is_recorded(op: &dyn Op, inputs: &[&Tensor]) -> Result<bool> {
    if !op.is_differentiable() || !is_grad_enabled() {
        return Ok(false);
    }
    for input in inputs {
        let (history, buffer) = (input.history(), &input.array().buffer);
        let Some(version) = history.view() else { continue };
        // A computed view tells of the tensor it was taken from, which any write changes; another
        // one misses only what gradients should go through.
        let stale = match history.is_leaf() {
            true => buffer.recorded_version() > version,
            false => buffer.version() != version,
        };
        if stale {
            return Err(Error::StaleView { op: op.name() });
        }
    }
    Ok(inputs.iter().any(|input| input.history().is_tracked()))
}

/// A result that the rule reads, without its history.
fn saved_output(result: &Array) -> (Tensor, u64) {
    (Tensor::from_array(result.clone()), result.buffer.version())
}

/// The values that the rule reads.
fn save(saves: Saves, inputs: &[&Tensor], copies: &Copies) -> Saved {
    let inputs = inputs.iter().enumerate().map(|(k, tensor)| {
        (saves.inputs >> k & 1 == 1).then(|| {
            let saved = match copies.get(k) {
                // The copy stands for the tensor as it was, history and all.
                Some(copy) => Tensor::with_history(copy.clone(), tensor.history_again()),
                None => (*tensor).clone(),
            };
            let version = saved.array().buffer.version();
            (saved, version)
        })
    });
    Saved { inputs: inputs.collect(), output: None }
}
