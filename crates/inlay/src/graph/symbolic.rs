//! Symbolic tensors: handles to values of a program. The funnel appends a node for them instead of
//! running an operation.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use inlay_core::{Dim, Error, Layout, Meta, Result};
use smallvec::SmallVec;

use super::program::{Id, Program, What};
use super::site::Site;
use crate::Tensor;
use crate::array::Array;
use crate::autograd::{History, Node, Saved, is_grad_enabled};
use crate::funnel::Op;
use crate::memory::Buffer;
use crate::ops::Operation;

/// What a symbolic tensor stands for.
pub(crate) struct Symbolic {
    program: Program,
    meta: Meta,
    now: Arc<Now>,
    /// For a view: the tensor that it was taken from, and the version that this tensor had.
    base: Option<(Arc<Now>, u64)>,
}

/// The value that a handle has now. A write in place gives it another value.
struct Now {
    id: AtomicU32,
    version: AtomicU64,
}

impl Now {
    fn new(id: Id) -> Arc<Self> {
        Arc::new(Now { id: AtomicU32::new(id), version: AtomicU64::new(0) })
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

impl Symbolic {
    /// A handle to a value. `of` is the tensor that the value is a view of.
    pub(super) fn new(program: &Program, id: Id, meta: Meta, of: Option<&Symbolic>) -> Self {
        let base = of.map(|of| match &of.base {
            Some((base, version)) => (Arc::clone(base), *version),
            None => (Arc::clone(&of.now), of.now.version()),
        });
        Symbolic { program: program.clone(), meta, now: Now::new(id), base }
    }

    /// A new handle to the value that this handle has now.
    pub(crate) fn again(&self) -> Self {
        let id = self.now.id.load(Ordering::Acquire);
        Symbolic::new(&self.program, id, self.meta.clone(), None)
    }

    /// A new handle to the same value, as a view: it becomes invalid when this tensor is written.
    pub(crate) fn view(&self) -> Self {
        let id = self.now.id.load(Ordering::Acquire);
        Symbolic::new(&self.program, id, self.meta.clone(), Some(self))
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// The value that it has now. An error for a view whose base was written after the view was
    /// made.
    pub(super) fn id(&self, op: &'static str) -> Result<Id> {
        match &self.base {
            Some((base, version)) if base.version() != *version => Err(Error::StaleView { op }),
            _ => Ok(self.now.id.load(Ordering::Acquire)),
        }
    }

    /// An array of these sizes without memory. Reading it is an error.
    pub(crate) fn stand_in(&self) -> Array {
        let size = |dim: &Dim| dim.known().unwrap_or(Tensor::UNKNOWN);
        let shape: SmallVec<[usize; 6]> = self.meta.shape.iter().map(size).collect();
        let strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, shape.len());
        let layout = Layout::over(&shape, &strides, 0);
        Array { buffer: Buffer::nothing(), layout, dtype: self.meta.dtype }
    }
}

/// A call that is being recorded.
struct Recorded {
    id: Id,
    meta: Meta,
    inputs: SmallVec<[Meta; 3]>,
}

fn record(
    program: &Program,
    op: &dyn Op,
    operation: Operation,
    inputs: &[&Tensor],
    caller: &Location<'_>,
) -> Result<Recorded> {
    let site = Site::now(caller);
    let make = || {
        let mut ids: SmallVec<[Id; 4]> = SmallVec::new();
        for input in inputs {
            ids.push(program.id_of(op.name(), input)?);
        }
        let metas: SmallVec<[Meta; 3]> = inputs.iter().map(|input| input.meta()).collect();
        let meta = op.infer(&metas)?;
        let graph = program.graph();
        for dim in op.sizes() {
            if let Dim::Symbol(symbol) = dim
                && !graph.sizes.contains_key(&symbol)
            {
                return Err(Error::OtherProgram { op: op.name() });
            }
        }
        drop(graph);
        let id = program.push(What::Op(operation), &ids, meta.clone(), site.clone())?;
        Ok(Recorded { id, meta, inputs: metas })
    };
    make().map_err(|error| site.locate(error))
}

/// Whether the call must be recorded for a gradient.
fn is_tracked(op: &dyn Op, inputs: &[&Tensor]) -> Result<bool> {
    if !op.is_differentiable() || !is_grad_enabled() {
        return Ok(false);
    }
    let mut tracked = inputs.iter().filter(|input| input.history().is_tracked());
    if tracked.any(|input| !input.is_symbolic()) {
        return Err(Error::Captured { op: op.name() });
    }
    Ok(inputs.iter().any(|input| input.history().is_tracked()))
}

/// What the gradient rule reads. A write in place gives a handle another value but does not change
/// the values that are saved here.
fn save(op: &dyn Op, inputs: &[&Tensor], output: &Symbolic) -> Saved {
    let saves = op.saves();
    let version = |tensor: &Tensor| tensor.array().buffer.version();
    let inputs = inputs.iter().enumerate().map(|(k, tensor)| {
        (saves.inputs >> k & 1 == 1).then(|| {
            let saved = tensor.again(tensor.history_again());
            let version = version(&saved);
            (saved, version)
        })
    });
    let output = saves.output.then(|| {
        let saved = Tensor::of_value(output.again(), History::default());
        let version = version(&saved);
        (saved, version)
    });
    Saved { inputs: inputs.collect(), output }
}

/// Appends a node to `program`. The result stands for its value.
#[track_caller]
pub(crate) fn append<O: Op + Into<Operation> + 'static>(
    program: &Program,
    op: O,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    let tracked = is_tracked(&op, inputs)?;
    let operation: Operation = op.into();
    let Recorded { id, meta, inputs: metas } =
        record(program, &*operation, operation.clone(), inputs, Location::caller())?;
    let dtype = meta.dtype;
    let of = inputs.first().filter(|_| operation.is_view()).and_then(|first| first.symbolic());
    let result = Symbolic::new(program, id, meta, of);
    if !tracked || !dtype.is_differentiable() {
        return Ok(Tensor::of_value(result, History::default()));
    }
    let saved = save(&*operation, inputs, &result);
    let edges = inputs.iter().map(|input| input.edge()).collect();
    let node = Node::link(operation.boxed(), edges, metas, dtype, saved);
    Ok(Tensor::of_value(result, History::of_node(node, None)))
}

/// As [`append`], but the first of `inputs` is then the handle to the new value.
#[track_caller]
pub(crate) fn append_in_place<O: Op + Into<Operation> + 'static>(
    op: O,
    target: &Tensor,
    inputs: &[&Tensor],
) -> Result<()> {
    let (name, arg) = (op.name(), op.target());
    let Some(symbolic) = target.symbolic() else {
        let got = "a tensor with elements".into();
        let expected = "a symbolic one, as another input is".into();
        return Err(Error::Argument { op: name, arg, got, expected });
    };
    if symbolic.base.is_some() {
        return Err(Error::SymbolicView { op: name, arg });
    }
    let tracked = is_tracked(&op, inputs)?;
    if tracked && target.history().is_leaf() && target.history().is_tracked() {
        return Err(Error::InPlaceLeaf { op: name, arg });
    }
    let operation: Operation = op.into();
    let Recorded { id, meta, inputs: metas } =
        record(&symbolic.program, &*operation, operation.clone(), inputs, Location::caller())?;
    let result = Symbolic::new(&symbolic.program, id, meta, None);
    if tracked {
        let saved = save(&*operation, inputs, &result);
        let edges = inputs.iter().map(|input| input.edge()).collect();
        let dtype = target.dtype();
        target.history().set_node(Node::link(operation.boxed(), edges, metas, dtype, saved));
    }
    symbolic.now.id.store(id, Ordering::Release);
    symbolic.now.version.fetch_add(1, Ordering::AcqRel);
    Ok(())
}
