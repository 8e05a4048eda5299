//! Reduces contiguous rows place by place, in one loop over all places that accumulates in
//! registers.
//!
//! The loop has no calls, so there are few instructions between the loads of two rows, and the CPU
//! can have loads of more rows in flight. (1M rows of 64 `f32` into 100k on two threads: 15 ms, 20
//! ms with a call for each place.)

use std::marker::PhantomData;
use std::ops::Range;

use super::RowScatter;
use crate::arch::{self, Loop, Simd};
use crate::kernels::groups::Groups;
use crate::kernels::reducer::{Reducer, prefetch_far, rows_ahead};
use crate::stream;
use crate::tuning::STREAM;
use crate::walk::Run;

/// The number of elements of a run must be a multiple of this.
const LEAST: usize = 16;

/// A scatter of contiguous rows.
pub(super) struct Near<'a> {
    call: &'a RowScatter<'a>,
    steps: [isize; 3],
    /// The entries grouped by place, and where each group ends.
    order: &'a [u32],
    ends: &'a [u32],
    /// The groups, if not every place has one.
    sparse: Option<&'a Groups>,
    include_self: bool,
    /// Whether results are written by non-temporal stores. The rows that are read would evict the
    /// results from the caches anyway. (A result of 25 MB from 256 MB of updates: 11.5 ms instead
    /// of 14.)
    streams: bool,
}

impl<'a> Near<'a> {
    /// Returns `None` if there are too many entries for 32-bit numbers.
    pub(super) fn new(
        call: &'a RowScatter<'a>,
        groups: &'a Groups,
        include_self: bool,
    ) -> Option<Self> {
        let (order, ends) = groups.narrow()?;
        let bytes = |elements: usize| elements.saturating_mul(call.dst.dtype().size());
        let moved = bytes(call.dst.layout().numel()) + bytes(call.updates.layout().numel());
        Some(Near {
            call,
            steps: call.steps(),
            order,
            ends,
            sparse: (!groups.is_dense()).then_some(groups),
            include_self,
            streams: call.base.is_some() && moved / 2 >= STREAM.get(),
        })
    }

    /// Returns whether [`Near::reduce`] supports a run.
    fn fits<T: Copy, R: Reducer<T>>(&self, run: &Run<3>) -> bool {
        let near = |n: usize| run.strides[n] == size_of::<T>() as isize;
        // Old values that are not used may have any stride. In a gradient they are one zero that is
        // broadcast.
        let near = near(0) && near(2) && (near(1) || !self.include_self);
        let converts = size_of::<R::Acc>() != size_of::<T>();
        near && run.len.is_multiple_of(LEAST) && (arch::widens_halves() || !converts)
    }

    /// Reduces a run of the rows of some groups. `keep` is called with the place of each empty
    /// group.
    ///
    /// # Safety
    /// The run lies inside of the rows, and [`Near::fits`] returns true for it.
    /// `RowScatter::expect_sound` has checked the call, the groups are those of its entries, and no
    /// other thread has their places in this run.
    unsafe fn reduce<T: Copy, R: Reducer<T>>(
        &self,
        run: &Run<3>,
        groups: Range<usize>,
        keep: &dyn Fn(usize),
    ) {
        let work = RowReduction::<T, R> { near: self, run, groups, keep, types: PhantomData };
        // SAFETY: the caller's promise.
        unsafe { arch::dispatch(work) };
        stream::fence();
    }

    /// [`Near::reduce`] with `LANES` elements of a place at a time.
    ///
    /// # Safety
    /// As for [`Near::reduce`]. The length of the run is a multiple of `LANES`.
    #[inline(always)]
    unsafe fn reduce_by<T: Copy, R: Reducer<T>, const LANES: usize>(
        &self,
        simd: impl Simd,
        run: &Run<3>,
        groups: Range<usize>,
        keep: &dyn Fn(usize),
    ) {
        // Local copies, which the compiler can keep in registers.
        let Near { call, steps, order, ends, sparse, include_self, streams } = *self;
        let bytes = LANES * size_of::<T>();
        let (ahead, last) = (rows_ahead(bytes), order.len().saturating_sub(1));
        let old = call.base.unwrap_or(call.dst.as_src());
        let mut end = if groups.start == 0 { 0 } else { ends[groups.start - 1] as usize };
        // SAFETY: the caller's promise: the run lies inside of the rows, and places and entries lie
        // inside of their axes.
        unsafe {
            let (to, old, from) = (
                call.dst.origin().offset(run.offsets[0]),
                old.origin().offset(run.offsets[1]),
                call.updates.origin().offset(run.offsets[2]),
            );
            let widen =
                |from: *const u8| R::widen_many(simd, from.cast::<[T; LANES]>().read_unaligned());
            for group in groups {
                let start = std::mem::replace(&mut end, ends[group] as usize);
                if start == end {
                    keep(group);
                    continue;
                }
                let place = sparse.map_or(group, |groups| groups.place(group));
                let count = end - start + usize::from(include_self);
                for lane in (0..run.len).step_by(LANES) {
                    let by = lane * size_of::<T>();
                    let (to, old, from) = (to.add(by), old.wrapping_add(by), from.add(by));
                    let row = |k: usize| from.wrapping_offset(order[k] as isize * steps[2]);
                    let head = match include_self {
                        true => old.offset(place as isize * steps[1]),
                        false => row(start),
                    };
                    let mut acc = widen(head);
                    for k in start + usize::from(!include_self)..end {
                        prefetch_far(row((k + ahead).min(last)), bytes);
                        let values = widen(row(k));
                        for lane in 0..LANES {
                            acc[lane] = R::join(acc[lane], values[lane]);
                        }
                    }
                    let mut result = head.cast::<[T; LANES]>().read_unaligned();
                    R::finish_slice(&mut acc, count, &mut result);
                    let to = to.offset(place as isize * steps[0]);
                    if streams {
                        stream::copy(to, (&raw const result).cast(), bytes);
                    } else {
                        to.cast::<[T; LANES]>().write_unaligned(result);
                    }
                }
            }
        }
    }
}

/// Returns whether so many accumulators fit into `bytes`.
const fn fills<A>(lanes: usize, bytes: usize) -> bool {
    lanes * size_of::<A>() <= bytes
}

type ReduceNear<'a> = unsafe fn(&Near<'a>, &Run<3>, Range<usize>, &dyn Fn(usize));

/// [`Near::fits`] and [`Near::reduce`] of one reduction.
#[derive(Clone, Copy)]
pub(super) struct NearReduction<'a> {
    pub(super) fits: fn(&Near<'a>, &Run<3>) -> bool,
    pub(super) reduce: ReduceNear<'a>,
}

impl NearReduction<'_> {
    /// Returns `None` for means of 32-bit integers, whose 128-bit accumulators fit into no register.
    /// (Means of 50k rows of 64 `i32` take 9.4 ms by this loop, and 6 ms by another. Those of `i64`
    /// take 5.6 and 6.9 ms.)
    pub(super) fn of<T: Copy, R: Reducer<T>>() -> Option<Self> {
        if const { size_of::<R::Acc>() == 16 && size_of::<T>() == 4 } {
            None
        } else {
            Some(NearReduction { fits: Near::fits::<T, R>, reduce: Near::reduce::<T, R> })
        }
    }
}

/// [`Near::reduce`] as a loop that is compiled per level.
struct RowReduction<'a, T, R> {
    near: &'a Near<'a>,
    run: &'a Run<3>,
    groups: Range<usize>,
    keep: &'a dyn Fn(usize),
    types: PhantomData<(T, R)>,
}

impl<T: Copy, R: Reducer<T>> Loop for RowReduction<'_, T, R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self, simd: S) {
        let RowReduction { near, run, groups, keep, .. } = self;
        // Accumulators use half of the vector registers if the run is long enough. What is decided
        // by types is decided in `const` blocks, so that the other loops are not compiled.
        let longer = |lanes: usize| run.len.is_multiple_of(lanes);
        // SAFETY: the caller's promise.
        unsafe {
            if const { fills::<R::Acc>(64, S::ACCUMULATORS) } && longer(64) {
                return near.reduce_by::<T, R, 64>(simd, run, groups, keep);
            }
            if const { size_of::<R::Acc>() == 8 && fills::<R::Acc>(32, S::ACCUMULATORS) }
                && longer(32)
            {
                return near.reduce_by::<T, R, 32>(simd, run, groups, keep);
            }
            near.reduce_by::<T, R, LEAST>(simd, run, groups, keep);
        }
    }
}
