//! Folds of contiguous elements, with the same lanes and the same order as other folds.

use std::hint::black_box;
use std::marker::PhantomData;

use super::blocks::tree;
use super::{FEW_LANES, Folding, LANES};
use crate::arch::{self, Loop, Simd};
use crate::walk::Run;

/// Folds each of a run of contiguous lines of `len` elements, at most one block, into its result.
///
/// # Safety
/// The run's results can be written at offsets from `to`, and its lines read at offsets from
/// `from`.
pub(super) unsafe fn fold_run<F: Folding>(to: *mut u8, from: *const u8, run: &Run<2>, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { arch::dispatch(Lines::<F> { to, from, run: *run, len, fold: PhantomData }) }
}

/// Folds the `len` contiguous elements at `from`, at most one block, into the accumulator at `to`.
///
/// # Safety
/// The elements can be read, and the accumulator can be written.
pub(super) unsafe fn fold_block<F: Folding>(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut lanes = arch::dispatch(BlockLoop::<F> { from, len, fold: PhantomData });
        to.cast::<F::Acc>().write(tree::<F>(&mut lanes));
    }
}

/// [`lanes_of`] as a loop that is compiled per level.
struct BlockLoop<F> {
    from: *const u8,
    len: usize,
    fold: PhantomData<F>,
}

impl<F: Folding> Loop for BlockLoop<F> {
    type Output = [F::Acc; LANES];

    #[inline(always)]
    unsafe fn run<S: Simd>(self, _simd: S) -> [F::Acc; LANES] {
        // SAFETY: the caller's promise.
        unsafe { lanes_of::<F>(self.from, self.len) }
    }
}

/// [`run_plain`] as a loop that is compiled per level.
struct Lines<F> {
    to: *mut u8,
    from: *const u8,
    run: Run<2>,
    len: usize,
    fold: PhantomData<F>,
}

impl<F: Folding> Loop for Lines<F> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self, _simd: S) {
        // SAFETY: the caller's promise.
        unsafe { run_plain::<F>(self.to, self.from, &self.run, self.len) }
    }
}

/// # Safety
/// The run's results can be written, and its lines of `len` elements read.
#[inline(always)]
unsafe fn run_plain<F: Folding>(to: *mut u8, from: *const u8, run: &Run<2>, len: usize) {
    for k in 0..run.len as isize {
        let at = |n: usize| run.offsets[n] + k * run.strides[n];
        // SAFETY: the caller's promise.
        unsafe {
            let total = line::<F>(from.offset(at(1)), len);
            to.offset(at(0)).cast::<F::Stored>().write_unaligned(F::store(total, len));
        }
    }
}

/// Joins neighbouring lanes pairwise until one is left.
macro_rules! tree {
    ($F:ident, $lanes:ident, $($count:literal),*) => {{
        $(for k in 0..$count {
            $lanes[k] = $F::join($lanes[2 * k], $lanes[2 * k + 1]);
        })*
        $lanes[0]
    }};
}

/// The lanes of lines of at least this length go through memory. Otherwise the compiler makes 32
/// scalars of the lanes of a maximum, and does not vectorize its loop. (The maximum over the last axis
/// of 1000 x 1000 `f64` takes 66 us instead of 298, of `f32` half of the time.)
const LONG: usize = 128;

/// Folds one line.
///
/// # Safety
/// `len` elements at `from` can be read, and `len` is not 0.
#[inline(always)]
unsafe fn line<F: Folding>(from: *const u8, len: usize) -> F::Acc {
    // SAFETY: the caller's promise; indices are clamped to the last element.
    unsafe {
        if len <= FEW_LANES {
            let mut lanes = [F::NOTHING; FEW_LANES];
            // Lanes past the end read the last element and are replaced by a select, so there is no
            // branch and the compiler vectorizes the loop.
            for (k, lane) in lanes.iter_mut().enumerate() {
                let at = from.cast::<F::Number>().add(k.min(len - 1));
                let value = F::join(F::NOTHING, F::lift(at.read_unaligned()));
                *lane = if k < len { value } else { F::NOTHING };
            }
            tree!(F, lanes, 4, 2, 1)
        } else if len < LONG {
            let mut lanes = lanes_of::<F>(from, len);
            tree!(F, lanes, 16, 8, 4, 2, 1)
        } else {
            let mut lanes = black_box(lanes_of::<F>(from, len));
            tree!(F, lanes, 16, 8, 4, 2, 1)
        }
    }
}

/// Folds the `len` contiguous elements at `from` into lanes.
///
/// # Safety
/// The elements can be read.
#[inline(always)]
unsafe fn lanes_of<F: Folding>(from: *const u8, len: usize) -> [F::Acc; LANES] {
    // SAFETY: the caller's promise.
    let at = |k: usize| unsafe { F::lift(from.cast::<F::Number>().add(k).read_unaligned()) };
    let mut lanes = [F::NOTHING; LANES];
    let mut k = 0;
    while k + LANES <= len {
        for (lane, acc) in lanes.iter_mut().enumerate() {
            *acc = F::join(*acc, at(k + lane));
        }
        k += LANES;
    }
    if k < len {
        // The rest is padded with the neutral element, so that the compiler vectorizes it too.
        let mut rest = [F::NOTHING; LANES];
        for (lane, value) in rest[..len - k].iter_mut().enumerate() {
            *value = at(k + lane);
        }
        for (acc, value) in lanes.iter_mut().zip(rest) {
            *acc = F::join(*acc, value);
        }
    }
    lanes
}
