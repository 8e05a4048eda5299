//! The path of every call: infer, then run or append to a program, then record.

use std::panic::Location;
use std::sync::Arc;

use inlay_core::{DType, Error, Meta, Result};
use smallvec::SmallVec;

use crate::array::Array;
use crate::op::{AnyOp, Arity, Inferred, Of, Op, Out, WithFound, inputs_of};
use crate::placement::{Copies, place};
use crate::symbolic::{ProgramRef, Symbolic, program_of_sizes};
use crate::tape::{Edge, History, Link, Saved, Saves, TapeNode, is_grad_enabled};
use crate::{Device, Tensor, device};

/// Runs `op` on `inputs`. The result is fresh, or a view for operations that make views. On
/// symbolic tensors the call becomes a node of their program.
#[track_caller]
pub(crate) fn apply<O: Op>(op: O, inputs: Of<'_, O, &Tensor>) -> Result<Tensor> {
    let inputs = O::Inputs::all(inputs);
    let program = program_of(&op, inputs);
    call(op, inputs, Out::Fresh, program, None)
}

/// Like [`apply`], but writes the result into the first input, which is returned.
///
/// If the call fails, that input is unchanged. Inputs that overlap it in memory are copied first,
/// so that their old values are read.
#[track_caller]
pub(crate) fn apply_in_place<O: Op>(op: O, inputs: Of<'_, O, &Tensor>) -> Result<Tensor> {
    let inputs = O::Inputs::all(inputs);
    let symbolic = inputs.iter().find_map(|input| input.symbolic());
    let program = symbolic.map(|symbolic| symbolic.program().clone());
    call(op, inputs, Out::InPlace, program, None)
}

/// Like [`apply`], but in the program of `beside` if that is symbolic, else on its device,
/// regardless of the inputs.
#[track_caller]
pub(crate) fn apply_beside<O: Op>(
    beside: &Tensor,
    op: O,
    inputs: Of<'_, O, &Tensor>,
) -> Result<Tensor> {
    match beside.symbolic() {
        Some(symbolic) => {
            let program = Some(symbolic.program().clone());
            call(op, O::Inputs::all(inputs), Out::Fresh, program, None)
        }
        None => apply_on(beside.device(), op, inputs),
    }
}

/// Like [`apply`], on the given device.
#[track_caller]
pub(crate) fn apply_on<O: Op>(device: Device, op: O, inputs: Of<'_, O, &Tensor>) -> Result<Tensor> {
    let inputs = O::Inputs::all(inputs);
    let program = program_of(&op, inputs);
    call(op, inputs, Out::Fresh, program, Some(device))
}

impl Out {
    /// Calls [`apply`] or [`apply_in_place`].
    #[track_caller]
    pub(crate) fn apply<O: Op>(self, op: O, inputs: Of<'_, O, &Tensor>) -> Result<Tensor> {
        match self {
            Out::Fresh => apply(op, inputs),
            Out::InPlace => apply_in_place(op, inputs),
        }
    }
}

/// Returns the program that a call belongs to: that of a symbolic input, or that of a symbolic size
/// if all inputs are constants.
#[inline]
fn program_of<O: Op>(op: &O, inputs: &[&Tensor]) -> Option<ProgramRef> {
    match inputs.iter().find_map(|input| input.symbolic()) {
        Some(symbolic) => Some(symbolic.program().clone()),
        None => program_of_sizes(&op.sizes()),
    }
}

/// The steps that all calls have in common. A call of tensors with elements ends in [`run`], a call
/// of symbolic tensors in a node of their program.
#[track_caller]
#[inline]
fn call<O: Op>(
    op: O,
    inputs: &[&Tensor],
    out: Out,
    program: Option<ProgramRef>,
    wanted: Option<Device>,
) -> Result<Tensor> {
    let mut metas = O::Inputs::each(inputs, |_| Meta::known(DType::F32, &[]));
    metas.as_mut().iter_mut().zip(inputs).for_each(|(meta, tensor)| tensor.meta_into(meta));
    // Large results are borrowed where they are: a move of bytes that were just stored stalls.
    let found = op.infer(inputs_of::<O, _>(metas.as_ref()));
    let inferred = match (&found, &program) {
        (Ok(inferred), _) => inferred,
        (Err(error), None) => return Err(error.clone()),
        (Err(error), Some(program)) => {
            return Err(program.locate(error.clone(), Location::caller()));
        }
    };
    let record = is_recorded(&op, inputs, program.is_some())?;
    if out == Out::InPlace {
        debug_assert_eq!(inferred.meta, metas.as_ref()[0], "{} keeps dtype and shape", op.name());
        expect_target(&op, inputs[0], program.is_some(), record)?;
    }
    // Edges and saved values are made only for a recorded call: moving them takes a tenth of the
    // time of a tiny call.
    let saves = if record { op.saves() } else { Saves::NOTHING };
    // Called before the target gets its new history.
    let edges = || inputs.iter().map(|input| input.edge()).collect();
    let Some(program) = &program else {
        let edges = if record { edges() } else { SmallVec::new() };
        let mut saved = Saved::default();
        let result = run(&op, inferred, inputs, (out, wanted), (record, saves), &mut saved);
        let array = match &result {
            Ok(array) => array,
            Err(error) => return Err(error.clone()),
        };
        let is_view = O::IS_VIEW
            && inputs.first().is_some_and(|first| array.buffer.same_as(&first.array().buffer));
        let view = is_view.then(|| array.buffer.version());
        if !record {
            return Ok(match out {
                Out::Fresh => Tensor::with_history(result?, History::of_view(view)),
                Out::InPlace => inputs[0].clone(),
            });
        }
        let node = tape(op, found?, metas, edges, array.dtype, saved);
        return Ok(match out {
            Out::Fresh => Tensor::with_history(result?, History::new(node, view)),
            Out::InPlace => rewritten(inputs[0], node),
        });
    };
    let edges = edges();
    let any = AnyOp::new(op.clone());
    let id = Arc::clone(program).append(any, inputs, &inferred.meta, Location::caller())?;
    let of = inputs.first().filter(|_| O::IS_VIEW).and_then(|first| first.symbolic());
    let value = Symbolic::new(program, id, inferred.meta.clone(), of);
    let saved = saved_values(inputs, saves, &value);
    let dtype = inferred.meta.dtype;
    let node = if record { tape(op, found?, metas, edges, dtype, saved) } else { None };
    Ok(match (out, inputs.first().and_then(|first| first.symbolic())) {
        (Out::InPlace, Some(target)) => {
            target.move_on(id);
            rewritten(inputs[0], node)
        }
        _ => Tensor::of_value(value, History::new(node, None)),
    })
}

/// Gives the target of a write in place its new history, and returns the target.
fn rewritten(target: &Tensor, node: Option<Link>) -> Tensor {
    node.into_iter().for_each(|node| target.history().set_node(node));
    target.clone()
}

/// Returns the node of a recorded call, or `None` if the dtype of the result has no gradient.
#[inline(never)]
fn tape<O: Op>(
    op: O,
    inferred: Inferred<O::Found>,
    metas: impl IntoIterator<Item = Meta>,
    edges: SmallVec<[Edge; 3]>,
    dtype: DType,
    saved: Saved,
) -> Option<Link> {
    let link = || {
        TapeNode::link(
            Box::new(WithFound { op, inferred }),
            edges,
            metas.into_iter().collect(),
            dtype,
            saved,
        )
    };
    dtype.is_differentiable().then(link)
}

/// Runs a call of tensors with elements, on the device `wanted` or else on that of its inputs.
#[inline(always)]
fn run<O: Op>(
    op: &O,
    inferred: &Inferred<O::Found>,
    inputs: &[&Tensor],
    (out, wanted): (Out, Option<Device>),
    (record, saves): (bool, Saves),
    saved: &mut Saved,
) -> Result<Array> {
    let device = place(op, inputs, wanted, out)?;
    let mut copies = Copies::default();
    let result = device::scoped(device, inputs.len(), || {
        copies.move_along(op.name(), device, inputs)?;
        // If the rule reads the old target, it is copied before it is overwritten.
        let mut before = None;
        if out == Out::InPlace {
            copies.keep_apart(op.name(), inputs)?;
            if saves.reads(0) {
                before = Some(device::to_contiguous(op.name(), inputs[0].array())?);
            }
        }
        let result = {
            let arrays = copies.read_from::<O::Inputs>(inputs);
            op.run(inputs_of::<O, _>(arrays.as_ref()), inferred, out)
        };
        before.into_iter().for_each(|before| copies.add(0, before));
        result
    });
    let Ok(array) = &result else { return result };
    // Counted before values are saved, because each is saved with the version of its memory.
    if out == Out::InPlace {
        inputs[0].array().buffer.count_write(record);
    }
    if saves != Saves::NOTHING {
        let copy = |k: usize| match copies.get(k) {
            // The copy has the old elements, so it gets the old history.
            Some(copy) => Tensor::with_history(copy.clone(), inputs[k].history_again()),
            None => inputs[k].clone(),
        };
        // The result is saved without its history: that is the node itself, so it would be a cycle.
        *saved = Saved::new(saves, inputs.len(), copy, || Tensor::from_array(array.clone()));
    }
    result
}

/// Returns the values that the rule of a symbolic call reads. Writes in place change handles, not
/// values, so these stay valid.
fn saved_values(inputs: &[&Tensor], saves: Saves, value: &Symbolic) -> Saved {
    let input = |k: usize| inputs[k].again(inputs[k].history_again());
    Saved::new(saves, inputs.len(), input, || Tensor::of_value(value.again(), History::default()))
}

/// Returns whether the call is recorded: a gradient is wanted for one of its inputs.
fn is_recorded<O: Op>(op: &O, inputs: &[&Tensor], symbolic: bool) -> Result<bool> {
    if !O::HAS_GRADIENT || !is_grad_enabled() {
        return Ok(false);
    }
    let tracked = inputs.iter().any(|input| input.history().is_tracked());
    if symbolic {
        let captured = |input: &&&Tensor| input.history().is_tracked() && !input.is_symbolic();
        return match inputs.iter().find(captured) {
            Some(_) => Err(Error::Captured { op: op.name() }),
            None => Ok(tracked),
        };
    }
    for input in inputs {
        let (history, buffer) = (input.history(), &input.array().buffer);
        let Some(version) = history.view() else { continue };
        // A view that was computed is stale after any write to its memory. A view that is a leaf is
        // stale only after a write that was recorded for a gradient.
        let stale = match history.is_leaf() {
            true => buffer.recorded_version() > version,
            false => buffer.version() != version,
        };
        if stale {
            return Err(Error::StaleView { op: op.name() });
        }
    }
    Ok(tracked)
}

/// Fails unless the call may write into `target`, its first input.
fn expect_target<O: Op>(op: &O, target: &Tensor, symbolic: bool, record: bool) -> Result<()> {
    let (name, arg) = (op.name(), op.operation().target());
    match (symbolic, target.symbolic()) {
        (false, _) => {
            target.array().expect_target(name, arg)?;
            if record && target.history().view().is_some() {
                return Err(Error::InPlaceView { op: name, arg });
            }
        }
        (true, None) => {
            let got = "a tensor with elements".into();
            let expected = "a symbolic one, as another input is".into();
            return Err(Error::Argument { op: name, arg, got, expected });
        }
        (true, Some(symbolic)) if symbolic.is_view() => {
            return Err(Error::SymbolicView { op: name, arg });
        }
        (true, Some(_)) => {}
    }
    if record && target.history().is_leaf() && target.history().is_tracked() {
        return Err(Error::InPlaceLeaf { op: name, arg });
    }
    Ok(())
}
