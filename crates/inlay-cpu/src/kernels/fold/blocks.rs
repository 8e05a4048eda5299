//! Folds of blocks: the elements of one result, or of a strip of results whose elements are adjacent
//! in memory, and the tree that joins the blocks of a result.

use std::ops::Range;

use super::{COLUMNS, Folding, Sums};
use crate::walk::{Run, Walk};

/// Folds the elements of a block into the accumulator at `to`.
///
/// # Safety
/// `to` can be written. `origin` is an address at which the walk stays inside of elements of `F`.
pub(super) unsafe fn block_of<F: Folding, const LANES: usize>(
    to: *mut u8,
    inner: &Walk<1>,
    origin: *const u8,
    elements: Range<usize>,
) {
    let total = if elements.is_empty() {
        F::EMPTY
    } else {
        let mut lanes = [F::NOTHING; LANES];
        let first = elements.start;
        // SAFETY: the caller's promise.
        inner.runs(elements, |run| unsafe { join_run::<F, LANES>(&mut lanes, first, origin, run) });
        tree::<F>(&mut lanes)
    };
    // SAFETY: the caller's promise.
    unsafe { to.cast::<F::Acc>().write(total) };
}

/// Joins the elements of a run to their lanes. Element `first` of the walk goes to lane 0.
///
/// # Safety
/// As for [`block_of`].
#[inline(always)]
unsafe fn join_run<F: Folding, const LANES: usize>(
    lanes: &mut [F::Acc; LANES],
    first: usize,
    origin: *const u8,
    run: Run<1>,
) {
    // SAFETY: the caller's promise.
    let at = |k: usize, stride: isize| unsafe {
        let at = run.offsets[0] + k as isize * stride;
        F::lift(origin.offset(at).cast::<F::Number>().read_unaligned())
    };
    let lane = |k: usize| (run.position - first + k) % LANES;
    let size = size_of::<F::Number>() as isize;
    let mut k = 0;
    if run.strides[0] == size {
        // Elements up to the next first lane are joined one by one. Then all lanes are joined at
        // once, which the compiler vectorizes.
        while k < run.len && lane(k) != 0 {
            lanes[lane(k)] = F::join(lanes[lane(k)], at(k, size));
            k += 1;
        }
        // A local copy, which the compiler can keep in registers.
        let mut own = *lanes;
        while k + LANES <= run.len {
            for (lane, acc) in own.iter_mut().enumerate() {
                *acc = F::join(*acc, at(k + lane, size));
            }
            k += LANES;
        }
        *lanes = own;
    }
    for k in k..run.len {
        lanes[lane(k)] = F::join(lanes[lane(k)], at(k, run.strides[0]));
    }
}

/// [`block_of`] for several results whose elements are `across` bytes apart. Each result uses the
/// same lanes and the same order as in `block_of`.
///
/// # Safety
/// As for [`block_of`], for each of the results. There are at most [`COLUMNS`].
pub(super) unsafe fn strip_of<F: Folding, const LANES: usize>(
    sums: Sums,
    inner: &Walk<1>,
    origin: *const u8,
    elements: Range<usize>,
    across: isize,
) {
    const { assert!(LANES.is_power_of_two()) };
    assert!(sums.count <= COLUMNS, "a strip");
    let size = size_of::<F::Number>() as isize;
    let mut lanes = [[F::NOTHING; COLUMNS]; LANES];
    let (first, empty) = (elements.start, elements.is_empty());
    inner.runs(elements, |run| {
        for k in 0..run.len {
            let row = &mut lanes[(run.position - first + k) % LANES][..sums.count];
            // SAFETY: the caller's promise.
            unsafe {
                let from = origin.offset(run.offsets[0] + k as isize * run.strides[0]);
                // The compiler can vectorize only the loop with a constant stride.
                if across == size {
                    let from = from.cast::<F::Number>();
                    for (column, acc) in row.iter_mut().enumerate() {
                        *acc = F::join(*acc, F::lift(from.add(column).read_unaligned()));
                    }
                } else {
                    for (column, acc) in row.iter_mut().enumerate() {
                        let from = from.offset(column as isize * across).cast::<F::Number>();
                        *acc = F::join(*acc, F::lift(from.read_unaligned()));
                    }
                }
            }
        }
    });
    // The tree of every result, level by level, so that the compiler vectorizes over the results.
    let mut len = LANES;
    while len > 1 {
        len /= 2;
        for lane in 0..len {
            let (left, right) = (lanes[2 * lane], lanes[2 * lane + 1]);
            let joined = left.iter().zip(&right).take(sums.count);
            for (to, (&a, &b)) in lanes[lane].iter_mut().zip(joined) {
                *to = F::join(a, b);
            }
        }
    }
    for (k, &total) in lanes[0][..sums.count].iter().enumerate() {
        let total = if empty { F::EMPTY } else { total };
        // SAFETY: the caller's promise.
        unsafe { sums.first.cast::<F::Acc>().add(k * sums.blocks).write(total) };
    }
}

/// Joins the accumulators of the blocks of each result, and stores the results of folds of `count`
/// elements at `to`.
///
/// # Safety
/// All accumulators were written, and all results can be written.
pub(super) unsafe fn finish<F: Folding>((to, stride): (*mut u8, isize), sums: Sums, count: usize) {
    for k in 0..sums.count {
        // SAFETY: the caller's promise.
        unsafe {
            let first = sums.first.cast::<F::Acc>().add(k * sums.blocks);
            let total = tree::<F>(std::slice::from_raw_parts_mut(first, sums.blocks));
            let to = to.offset(k as isize * stride).cast::<F::Stored>();
            to.write_unaligned(F::store(total, count));
        }
    }
}

/// Joins neighbouring values pairwise until one is left.
pub(super) fn tree<F: Folding>(values: &mut [F::Acc]) -> F::Acc {
    let mut len = values.len();
    while len > 1 {
        for k in 0..len / 2 {
            values[k] = F::join(values[2 * k], values[2 * k + 1]);
        }
        if len % 2 == 1 {
            values[len / 2] = values[len - 1];
        }
        len = len.div_ceil(2);
    }
    values[0]
}
