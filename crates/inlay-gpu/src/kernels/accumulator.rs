//! The accumulators of folds and reductions: their type, how two are joined, and the final element.

use inlay_core::{DType, Fold, Kind, Reduce};

use crate::numbers::wide_size;
use crate::shader::{Kernel, Wgsl, wgsl, wgsl_file};

/// The accumulator of a fold or of a reduction.
pub(super) struct Accumulator {
    /// The number of bytes of an accumulator in a buffer.
    pub(super) size: usize,
    /// The WGSL of the type `A`, and of `join(a, b)`.
    texts: [&'static Wgsl; 2],
    /// The WGSL of `finish(a, count)`, which returns the element to store.
    finish: &'static Wgsl,
}

/// The WGSL of `join(a, b)`, which calls the function of the given name.
macro_rules! join {
    ($function:literal) => {
        wgsl!("fn join(a: A, b: A) -> A { return ", $function, "(a, b); }\n")
    };
}

/// The WGSL of `finish(a, count)`, which returns the given expression.
macro_rules! finish {
    ($result:literal) => {
        wgsl!("fn finish(a: A, count: u32) -> Stored { return ", $result, "; }\n")
    };
}

impl Accumulator {
    /// The accumulator of a fold. Sums and products of integers have 64 bits.
    pub(super) fn of_fold(how: Fold, dtype: DType) -> Self {
        let int64 = |join| Accumulator {
            size: 8,
            texts: [wgsl_file!("acc_int64.wgsl"), join],
            finish: finish!("a"),
        };
        match (how, is_whole(dtype)) {
            (Fold::Sum, true) => int64(join!("pair_add")),
            (Fold::Prod, true) => int64(join!("pair_mul")),
            (Fold::Sum, false) => Accumulator::of_reduce(Reduce::Sum, dtype),
            (Fold::Prod, false) => Accumulator::of_reduce(Reduce::Mul, dtype),
            (Fold::Mean, _) => Accumulator::of_reduce(Reduce::Mean, dtype),
            (Fold::Amax, _) => Accumulator::of_reduce(Reduce::Amax, dtype),
            (Fold::Amin, _) => Accumulator::of_reduce(Reduce::Amin, dtype),
        }
    }

    /// The accumulator of the updates of a place. The result has the dtype of the updates.
    pub(super) fn of_reduce(reduce: Reduce, dtype: DType) -> Self {
        let (join, finish) = match reduce {
            Reduce::Sum => (join!("add"), finish!("raw(a)")),
            Reduce::Mul => (join!("mul"), finish!("raw(a)")),
            Reduce::Amax => (join!("larger"), finish!("raw(a)")),
            Reduce::Amin => (join!("smaller"), finish!("raw(a)")),
            Reduce::Mean => (join!("mean_add"), finish!("raw(mean_end(a, count))")),
        };
        let (size, acc) = match reduce == Reduce::Mean && is_whole(dtype) {
            true => (16, wgsl_file!("acc_int128.wgsl")),
            false => (wide_size(dtype), wgsl_file!("acc_number.wgsl")),
        };
        Accumulator { size, texts: [acc, join], finish }
    }
}

pub(super) fn is_whole(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Integer | Kind::Bool)
}

impl Kernel<'_> {
    /// Adds the accumulator for elements of `dtype`.
    pub(super) fn accumulates(self, accumulator: &Accumulator, dtype: DType) -> Self {
        self.computes_in(dtype).with_all(&accumulator.texts)
    }

    /// Adds `finish`, which converts an accumulator to an element of `to`.
    pub(super) fn finishes(self, accumulator: &Accumulator) -> Self {
        self.with(accumulator.finish)
    }
}
