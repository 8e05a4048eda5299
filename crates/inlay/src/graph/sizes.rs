//! The sizes of the call for which a function is traced.
//!
//! A trace leaves sizes open, so that it serves calls of all sizes. The function may nevertheless
//! read a size. It then gets that of the current call, and the trace is not used for others.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use inlay_core::{Dim, Meta, Shape, Symbol};
use smallvec::SmallVec;

use super::bind::{SymbolSizes, sized};
use crate::lock::lock;
use crate::op::AnyOp;

/// The sizes of the current call, and whether the traced function has read one that is open.
#[derive(Default)]
pub(super) struct CallSizes {
    known: Mutex<SymbolSizes>,
    read: AtomicBool,
}

impl CallSizes {
    /// What a size is that depends on values. The call that reads it fails when the function
    /// returns. Until then, 1 makes loops end, and neither divides by zero nor underflows.
    const LATE: usize = 1;

    /// Records the sizes that symbols stand for.
    pub(super) fn learn(&self, sizes: impl IntoIterator<Item = (Symbol, usize)>) {
        lock(&self.known).extend(sizes);
    }

    /// Computes the sizes `defined` of the result of an operation.
    pub(super) fn follow(&self, op: &AnyOp, inputs: &[Meta], defined: &[(Symbol, usize)]) {
        let mut known = lock(&self.known);
        let size = |dim: &Dim| match dim {
            Dim::Known(_) => Some(*dim),
            Dim::Symbol(symbol) => known.get(symbol).copied().map(Dim::Known),
        };
        let with_sizes = |meta: &Meta| {
            Some(meta.with_shape(meta.shape.iter().map(size).collect::<Option<_>>()?))
        };
        let inputs: Option<SmallVec<[Meta; 3]>> = inputs.iter().map(with_sizes).collect();
        let (Some(inputs), Some(op)) = (inputs, sized(op, &known)) else { return };
        // Shapes that don't fit are reported by the run.
        let Ok(checked) = op.check(&inputs) else { return };
        for (symbol, axis) in defined {
            if let Some(size) = checked.meta().shape.get(*axis).and_then(|dim| dim.known()) {
                known.insert(*symbol, size);
            }
        }
    }

    /// Returns the sizes of a shape in the current call, or `None` if none is open.
    pub(super) fn of(&self, shape: &[Dim]) -> Option<Shape> {
        if shape.iter().all(|dim| dim.known().is_some()) {
            return None;
        }
        let known = lock(&self.known);
        let size = |dim: &Dim| match dim {
            Dim::Known(size) => *size,
            Dim::Symbol(symbol) => known.get(symbol).copied().unwrap_or(Self::LATE),
        };
        Some(shape.iter().map(size).collect())
    }

    /// Notes that the traced function has read an open size.
    pub(super) fn note_read(&self) {
        self.read.store(true, Ordering::Relaxed);
    }

    pub(super) fn was_read(&self) -> bool {
        self.read.load(Ordering::Relaxed)
    }
}
