//! Rows without gaps, reduced place by place: one loop goes from place to place, and keeps what it
//! accumulates in registers.
//!
//! What the rows are read by is at hand, not behind calls: between two rows the CPU has few instructions
//! to look past, and so more rows are on their way at a time. (1M rows of 64 floats into 100k on two
//! threads: 15 ms, with a call for each place 20.)

use std::marker::PhantomData;
use std::ops::Range;

use super::Call;
use crate::arch::{self, Loop, Simd};
use crate::kernels::groups::Groups;
use crate::kernels::reducer::{Reducer, prefetch_far, rows_ahead};
use crate::stream;
use crate::tuning::STREAM;
use crate::walk::Run;

/// Rows are made of whole ones of so many elements.
const LEAST: usize = 16;

/// A call whose rows have no gaps.
pub(super) struct Near<'a> {
    call: &'a Call<'a>,
    steps: [isize; 3],
    /// Entries grouped by place, and where the groups end.
    order: &'a [u32],
    ends: &'a [u32],
    /// The entries' places, where not every place has a group.
    named: Option<&'a [i64]>,
    include_self: bool,
    /// Whether a result is written past the caches: it does not stay there anyway, with all the rows that
    /// go through them. (25 MB out of 256 MB: 11.5 ms instead of 14.)
    streams: bool,
}

impl<'a> Near<'a> {
    /// `None` where there are too many entries to be numbered in 32 bits.
    pub(super) fn new(
        call: &'a Call<'a>,
        groups: &'a Groups,
        named: &'a [i64],
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
            named: (!groups.is_dense()).then_some(named),
            include_self,
            streams: call.base.is_some() && moved / 2 >= STREAM.get(),
        })
    }

    /// Whether a run is one that [`Near::reduce`] is for.
    pub(super) fn fits<T: Copy, R: Reducer<T>>(&self, run: &Run<3>) -> bool {
        let near = |n: usize| run.strides[n] == size_of::<T>() as isize;
        // Old values that do not take part may lie anyhow: those of a gradient are one zero for all.
        let near = near(0) && near(2) && (near(1) || !self.include_self);
        let converts = size_of::<R::Acc>() != size_of::<T>();
        near && run.len.is_multiple_of(LEAST) && (arch::widens_halves() || !converts)
    }

    /// Reduces a run of the rows of some groups; `keep` is called with the place of an empty one.
    ///
    /// # Safety
    /// The run lies inside of the rows and is one that [`Near::fits`]; groups and places are those of the
    /// call, and no other thread has theirs in this run.
    pub(super) unsafe fn reduce<T: Copy, R: Reducer<T>>(
        &self,
        run: &Run<3>,
        groups: Range<usize>,
        keep: impl Fn(usize),
    ) {
        let work = Reduction::<T, R, _> { near: self, run, groups, keep, types: PhantomData };
        // SAFETY: the caller's promise.
        unsafe { arch::dispatch(work) };
        stream::fence();
    }

    /// `LANES` elements of a place at a time.
    ///
    /// # Safety
    /// As for [`Near::reduce`]. The run is a multiple of `LANES`.
    #[inline(always)]
    unsafe fn reduce_by<T: Copy, R: Reducer<T>, const LANES: usize>(
        &self,
        simd: impl Simd,
        run: &Run<3>,
        groups: Range<usize>,
        keep: impl Fn(usize),
    ) {
        // Copies that nothing points to are kept in registers.
        let Near { call, steps, order, ends, named, include_self, streams } = *self;
        let bytes = LANES * size_of::<T>();
        let (ahead, last) = (rows_ahead(bytes), order.len().saturating_sub(1));
        let old = call.base.unwrap_or(call.dst.as_src());
        let mut end = if groups.start == 0 { 0 } else { ends[groups.start - 1] as usize };
        // SAFETY: the caller's promise.
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
                let place = named.map_or(group, |named| named[order[start] as usize] as usize);
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

/// [`Near::reduce`] as a loop that is compiled per level.
struct Reduction<'a, T, R, K> {
    near: &'a Near<'a>,
    run: &'a Run<3>,
    groups: Range<usize>,
    keep: K,
    types: PhantomData<(T, R)>,
}

impl<T: Copy, R: Reducer<T>, K: Fn(usize)> Loop for Reduction<'_, T, R, K> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self, simd: S) {
        let Reduction { near, run, groups, keep, .. } = self;
        let fits = |lanes: usize| {
            run.len.is_multiple_of(lanes) && lanes * size_of::<R::Acc>() <= S::ACCUMULATORS
        };
        // SAFETY: the caller's promise.
        unsafe {
            // Half of the registers accumulate, if rows are that long.
            if size_of::<R::Acc>() <= 4 && fits(64) {
                near.reduce_by::<T, R, 64>(simd, run, groups, keep);
            } else if size_of::<R::Acc>() == 8 && fits(32) {
                near.reduce_by::<T, R, 32>(simd, run, groups, keep);
            } else {
                near.reduce_by::<T, R, LEAST>(simd, run, groups, keep);
            }
        }
    }
}
