//! Symbolic tensors: handles to values of a program.
//!
//! The funnel sees a program only as a [`Recorder`]. Programs themselves are in `graph`, above the
//! operations.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};

use inlay_core::{Dim, Error, Layout, Meta, Result, Shape, Symbol};
use smallvec::SmallVec;

use crate::Tensor;
use crate::array::Array;
use crate::lock::lock;
use crate::memory::Buffer;
use crate::op::AnyOp;

/// The number of a node of a program.
pub(crate) type Id = u32;

/// A program to which calls are appended.
pub(crate) trait Recorder: Send + Sync {
    /// Adds a node for a call that the code at `caller` makes. `meta` describes its result.
    fn append(
        self: Arc<Self>,
        op: AnyOp,
        inputs: &[&Tensor],
        meta: &Meta,
        caller: &Location<'_>,
    ) -> Result<Id>;

    /// Adds the name and the line of a call, if known, to its error.
    fn locate(&self, error: Error, caller: &Location<'_>) -> Error;

    /// While a function is traced for a call: the sizes of `shape` in that call. `None` if no size
    /// is open.
    fn sizes_in_call(&self, shape: &[Dim]) -> Option<Shape>;

    /// Notes that the traced function has read an open size.
    fn note_size_read(&self);
}

/// A handle to a program.
pub(crate) type ProgramRef = Arc<dyn Recorder>;

/// The program of each symbol. A size may be all that connects a call with its program.
static OWNERS: LazyLock<Mutex<HashMap<Symbol, Weak<dyn Recorder>>>> = LazyLock::new(Mutex::default);

/// Returns the program of the first symbol among `dims`.
pub(crate) fn program_of_sizes(dims: &[Dim]) -> Option<ProgramRef> {
    let symbol = dims.iter().find_map(|dim| match dim {
        Dim::Symbol(symbol) => Some(symbol),
        Dim::Known(_) => None,
    })?;
    lock(&OWNERS).get(symbol)?.upgrade()
}

/// Registers `symbols` as sizes of `program`.
pub(crate) fn own_sizes(symbols: impl IntoIterator<Item = Symbol>, program: &Weak<dyn Recorder>) {
    let mut owners = lock(&OWNERS);
    owners.extend(symbols.into_iter().map(|symbol| (symbol, program.clone())));
}

/// Removes `symbols` from the registry.
pub(crate) fn disown_sizes<'a>(symbols: impl IntoIterator<Item = &'a Symbol>) {
    let mut owners = lock(&OWNERS);
    symbols.into_iter().for_each(|symbol| drop(owners.remove(symbol)));
}

/// The value that a symbolic tensor stands for.
pub(crate) struct Symbolic {
    program: ProgramRef,
    meta: Meta,
    now: Arc<Now>,
    /// For a view: the handle that it was taken from, and the version of that handle then.
    base: Option<(Arc<Now>, u64)>,
    /// While a function is traced with open sizes: the sizes that it gets to see.
    seen: Option<Layout>,
}

/// The current value of a handle. A write in place gives the handle another value.
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
    /// Makes a handle to value `id`. For a view, `of` is the handle that it was taken from.
    pub(crate) fn new(program: &ProgramRef, id: Id, meta: Meta, of: Option<&Symbolic>) -> Self {
        let base = of.map(|of| match &of.base {
            Some((base, version)) => (Arc::clone(base), *version),
            None => (Arc::clone(&of.now), of.now.version()),
        });
        let seen = program.sizes_in_call(&meta.shape).map(|sizes| without_memory(&sizes));
        Symbolic { program: Arc::clone(program), meta, now: Now::new(id), base, seen }
    }

    /// Returns a new handle to the current value.
    pub(crate) fn again(&self) -> Self {
        let id = self.now.id.load(Ordering::Acquire);
        Symbolic::new(&self.program, id, self.meta.clone(), None)
    }

    /// Returns a new handle to the current value, through which it can't be written.
    pub(crate) fn view(&self) -> Self {
        let id = self.now.id.load(Ordering::Acquire);
        Symbolic::new(&self.program, id, self.meta.clone(), Some(self))
    }

    pub(crate) fn is_view(&self) -> bool {
        self.base.is_some()
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    pub(crate) fn program(&self) -> &ProgramRef {
        &self.program
    }

    /// Returns the current value, or an error for a view of a handle that was written since.
    pub(crate) fn id(&self, op: &'static str) -> Result<Id> {
        match &self.base {
            Some((base, version)) if base.version() != *version => Err(Error::StaleView { op }),
            _ => Ok(self.now.id.load(Ordering::Acquire)),
        }
    }

    /// Gives the handle another value, after a write in place.
    pub(crate) fn move_on(&self, id: Id) {
        self.now.id.store(id, Ordering::Release);
        self.now.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the layout that a traced function sees if a size is open, and notes that it was
    /// read. `None` outside of traces and if all sizes are known.
    pub(crate) fn read_layout(&self) -> Option<&Layout> {
        let seen = self.seen.as_ref()?;
        self.program.note_size_read();
        Some(seen)
    }

    /// Returns an array of these sizes without memory. It must not be read.
    pub(crate) fn stand_in(&self) -> Array {
        let size = |dim: &Dim| dim.known().unwrap_or(Tensor::UNKNOWN);
        let shape: Shape = self.meta.shape.iter().map(size).collect();
        let layout = without_memory(&shape);
        Array { buffer: Buffer::nothing(), layout, dtype: self.meta.dtype }
    }
}

/// Returns a layout for sizes only.
fn without_memory(shape: &[usize]) -> Layout {
    let strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, shape.len());
    Layout::over(shape, &strides, 0)
}
