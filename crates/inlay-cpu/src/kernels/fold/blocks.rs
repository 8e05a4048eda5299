//! Folds of blocks: the elements of one result, or of a strip of results whose elements are adjacent
//! in memory, and the tree that joins the blocks of a result.

use std::ops::Range;

use super::{Folding, LANES as FOLD_LANES, Sums};
use crate::arch::{self, Loop, Simd};
use crate::kernels::copy::move_run;
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
/// As for [`block_of`], for each of the results. `space` is aligned for accumulators, has
/// [`space_of`] bytes for each result, and nobody else uses it.
pub(super) unsafe fn strip_of<F: Folding, const LANES: usize>(
    sums: Sums,
    inner: &Walk<1>,
    (origin, across): (*const u8, isize),
    elements: Range<usize>,
    space: *mut u8,
) {
    const { assert!(LANES.is_power_of_two() && LANES <= FOLD_LANES) };
    let (size, count) = (size_of::<F::Number>() as isize, sums.count);
    // SAFETY: the caller's promise: there is room for as many accumulators, and they are aligned. All
    // are written before the slice is made. The copies of rows come after them.
    let (lanes, copies) = unsafe {
        let first = space.cast::<F::Acc>();
        (0..LANES * count).for_each(|k| first.add(k).write(F::NOTHING));
        (std::slice::from_raw_parts_mut(first, LANES * count), first.add(LANES * count))
    };
    let (first, empty) = (elements.start, elements.is_empty());
    let bytes = count * size_of::<F::Number>();
    let narrow = across == size && bytes <= NARROW;
    inner.runs(elements, |run| {
        // Returns the address of a row. A row with gaps is copied, so that loops over it can be
        // vectorized.
        let row = |k: usize, copy: usize| -> *const F::Number {
            // SAFETY: the caller's promise. The buffer has room for `DEPTH` rows.
            unsafe {
                let from = origin.offset(run.offsets[0] + k as isize * run.strides[0]);
                if across == size {
                    return from.cast();
                }
                let to = copies.cast::<F::Number>().add(copy * count);
                move_run::<F::Number>(to.cast(), size, from, across, count);
                to
            }
        };
        let lane = |k: usize| (run.position - first + k) % LANES * count;
        let mut k = 0;
        // The rows of a lane are `LANES` apart. Several of them are joined at once, in order.
        while run.len - k >= DEPTH * LANES {
            for k in k..k + LANES {
                let rows: [_; DEPTH] = std::array::from_fn(|n| row(k + n * LANES, n));
                if narrow {
                    let next =
                        |row: &*const F::Number| row.cast::<u8>().wrapping_offset(run.strides[0]);
                    rows.iter().for_each(|row| arch::prefetch_first(next(row), bytes));
                }
                let to = &mut lanes[lane(k)..][..count];
                // SAFETY: each row has an element for each accumulator.
                unsafe { arch::dispatch(JoinRows::<F, DEPTH> { to, rows }) };
            }
            k += DEPTH * LANES;
        }
        for k in k..run.len {
            let to = &mut lanes[lane(k)..][..count];
            // SAFETY: as above.
            unsafe { arch::dispatch(JoinRows::<F, 1> { to, rows: [row(k, 0)] }) };
        }
    });
    // The tree of every result, level by level, so that the compiler vectorizes over the results.
    let mut len = LANES;
    while len > 1 {
        len /= 2;
        for lane in 0..len {
            for k in lane * count..(lane + 1) * count {
                // The column of the accumulator is `k - lane * count`.
                lanes[k] = F::join(lanes[k + lane * count], lanes[k + (lane + 1) * count]);
            }
        }
    }
    for (k, &total) in lanes[..count].iter().enumerate() {
        let total = if empty { F::EMPTY } else { total };
        // SAFETY: the caller's promise.
        unsafe { sums.first.cast::<F::Acc>().add(k * sums.blocks).write(total) };
    }
}

/// The number of rows of one lane that are joined at once. The accumulators are loaded and stored
/// once for all of them. (A loop of its own over axis 0 of 10000 x 10000 `f32` on one thread, in strips
/// of 4096: 15 ms, 21 ms with 4 rows, and 18 to 19 ms with prefetches of the next rows.)
const DEPTH: usize = 8;

/// The next rows of a strip are prefetched if they have at most this many bytes, because the hardware
/// prefetcher needs longer ones. (A loop of its own over axis 0 of 4000 x 4000 `f32` on one thread of an
/// Intel Xeon, without and with prefetches: 4.9 and 6.7 ms in strips of 4000 results, 6.9 and 6.3 ms of
/// 256, 9.3 and 7.0 ms of 128.)
const NARROW: usize = 1 << 10;

/// Returns the bytes that [`strip_of`] needs for each result of a strip.
pub(super) fn space_of(acc: usize, number: usize) -> usize {
    FOLD_LANES * acc + DEPTH * number
}

/// Joins the contiguous elements of rows to the accumulators of their lane, row after row, as a loop
/// that is compiled per level.
struct JoinRows<'a, F: Folding, const ROWS: usize> {
    to: &'a mut [F::Acc],
    rows: [*const F::Number; ROWS],
}

impl<F: Folding, const ROWS: usize> Loop for JoinRows<'_, F, ROWS> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self, _simd: S) {
        for (column, acc) in self.to.iter_mut().enumerate() {
            for row in self.rows {
                // SAFETY: the caller's promise: each row has an element for each accumulator.
                *acc = F::join(*acc, F::lift(unsafe { row.add(column).read_unaligned() }));
            }
        }
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
