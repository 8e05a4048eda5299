//! Combines the entries of each lane with their places in index order. Means, and reductions
//! without `include_self`, also count how many values each element is made of.

use std::hint::select_unpredictable;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{Combine, Layout, Reduce, Result};

use super::{AHEAD, AxisIndex, AxisScatter, LANES, at, tile};
use crate::Src;
use crate::kernels::copy::copy_to;
use crate::kernels::positions::Shared;
use crate::kernels::reducer::{Reducer, dispatch_reduce, prefetch};
use crate::memory::Scratch;
use crate::number::dispatch_width;
use crate::stream::LINE;
use crate::threads;
use crate::tuning::COPIED;
use crate::walk::{Run, Walk};

/// The lanes of a call, and the scratch buffers for the block of lanes that a thread processes at a
/// time.
pub(super) struct LanePlan<'a> {
    lanes: Walk<4>,
    steps: [isize; 4],
    base: Option<Src<'a>>,
    /// Whether each block of lanes is copied from the base just before it is written, so that the
    /// copy is still in a cache. Otherwise the whole base is copied first. (2048 x 2048 `f32` along
    /// the last axis: 5 ms instead of 8.)
    by_lane: bool,
    /// The most lanes of a block.
    width: usize,
    /// The number of parts that the lanes are split into for the threads.
    parts: usize,
    /// For each part, a count for each place of each lane of a block: how many values the element
    /// is made of. Empty if nothing has to be counted.
    notes: Scratch<u32>,
    /// For each part, a tile that holds the elements of a block. Empty if blocks are not moved.
    tiles: Scratch<u8>,
}

impl<'a> LanePlan<'a> {
    /// Plans a call with an index of layout `entries` and allocates the scratch buffers.
    pub(super) fn new(
        call: &AxisScatter<'_>,
        base: Option<Src<'a>>,
        entries: &Layout,
    ) -> Result<Self> {
        let (size, layout) = (call.dst.same_size(&call.values), call.dst.layout());
        let has = |k: usize| k == call.axis || layout.shape()[k] == entries.shape()[k];
        let alike = base.filter(|base| base.layout().strides() == layout.strides());
        let alike = alike.filter(|_| (0..layout.rank()).all(has));
        let (lanes, steps) = call.lanes(entries, alike.map_or(layout, |base| base.layout()));
        // If neighbouring lanes are closer in memory than the elements of a lane, a block of lanes
        // is processed together. Otherwise a block is one lane.
        let across = steps[0].unsigned_abs() > lanes.run_strides()[0].unsigned_abs();
        let width = if across { lanes.run_len().min(LANES) } else { 1 };
        let near = if across { lanes.run_strides()[0] } else { steps[0] } == size as isize;
        let (count, places) = (entries.shape()[call.axis], call.places());
        // It is faster to copy the whole base first if only few elements of a lane are written, or
        // if the pieces of a block are shorter than a cache line.
        let wide = !across || width * size >= LINE;
        let many = lanes.len() >= threads::num_threads() && count >= places / COPIED.get();
        let by_lane = alike.is_some() && near && wide && many;
        let copied = if by_lane { places.saturating_mul(2 * size) } else { 0 };
        let cost = count.saturating_mul(2 * size + size_of::<i64>()).saturating_add(copied);
        let parts = threads::parts(lanes.len(), cost);
        let tile = match across && near {
            true => tile(places, steps[0], width * size, count),
            false => 0,
        };
        let notes = match call.combine {
            Combine::Reduce { reduce: Reduce::Mean, .. }
            | Combine::Reduce { include_self: false, .. } => {
                places.saturating_mul(width).saturating_mul(parts)
            }
            _ => 0,
        };
        let (notes, tiles) = (Scratch::new(notes)?, Scratch::new(tile.saturating_mul(parts))?);
        Ok(LanePlan { lanes, steps, base, by_lane, width, parts, notes, tiles })
    }
}

/// Writes all entries. Returns false if an entry is out of range; such an entry is skipped.
pub(super) fn scatter(
    call: &AxisScatter<'_>,
    entries: &AxisIndex<'_>,
    mut space: LanePlan<'_>,
) -> bool {
    let lanes = Lanes {
        call: *call,
        entries: *entries,
        steps: space.steps,
        base: space.base.filter(|_| space.by_lane),
        count: entries.layout.shape()[call.axis],
        places: call.places(),
    };
    if let Some(base) = space.base.filter(|_| !space.by_lane) {
        copy_to(call.dst, base);
    }
    let size = call.dst.same_size(&call.values);
    let block: WriteLanes = match call.combine {
        Combine::Assign => dispatch_width!(size, W => assign_lanes::<W>),
        Combine::Reduce { reduce, include_self } => {
            dispatch_reduce!(reduce, call.dst.dtype(), (T, R) => {
                match include_self {
                    false => join_noted_lanes::<T, R, false>,
                    true if <R as Reducer<T>>::COUNTS => join_noted_lanes::<T, R, true>,
                    true => join_lanes::<T, R>,
                }
            })
        }
    };
    lanes.run(&mut space, block)
}

/// Writes the entries of a block of lanes, whose notes are empty if nothing has to be counted.
/// Returns false if an entry is out of range.
///
/// # Safety
/// The dtype of the call is that of the function, or for an assignment its element size. No other
/// thread has the lanes.
type WriteLanes = unsafe fn(&Lanes<'_>, &LaneBlock, &mut [u32]) -> bool;

/// # Safety
/// As for [`WriteLanes`].
unsafe fn assign_lanes<W: Copy>(lanes: &Lanes<'_>, block: &LaneBlock, _: &mut [u32]) -> bool {
    lanes.each(block, size_of::<W>(), |_, _, to, from| {
        // SAFETY: `each` gives addresses of elements of `dst`, or of its tile, and of the values.
        // `scatter_elements` has checked their size and that they don't overlap. No other thread
        // has the lane.
        unsafe { to.cast::<W>().write_unaligned(from.cast::<W>().read_unaligned()) };
    })
}

/// # Safety
/// As for [`WriteLanes`].
unsafe fn join_lanes<T: Copy, R: Reducer<T>>(
    lanes: &Lanes<'_>,
    block: &LaneBlock,
    _: &mut [u32],
) -> bool {
    lanes.each(block, size_of::<T>(), |_, _, to, from| {
        // SAFETY: as for assignments, and `scatter_elements` has checked the dtype.
        unsafe { join(to, from, R::merge) };
    })
}

/// Reduces values, with a count of the values of each place. Old values take part if `SELF` is true.
///
/// # Safety
/// As for [`WriteLanes`].
unsafe fn join_noted_lanes<T: Copy, R: Reducer<T>, const SELF: bool>(
    lanes: &Lanes<'_>,
    block: &LaneBlock,
    notes: &mut [u32],
) -> bool {
    notes.fill(u32::from(SELF));
    let good = lanes.each(block, size_of::<T>(), |place, lane, to, from| {
        let note = &mut notes[place * block.run.len + lane];
        // SAFETY: as for assignments, and `scatter_elements` has checked the dtype.
        unsafe {
            join(to, from, |old, new| match SELF {
                true => R::merge(old, new),
                false => select_unpredictable(*note > 0, R::merge(old, new), R::alone(new)),
            })
        };
        *note += 1;
    });
    if <R as Reducer<T>>::COUNTS {
        lanes.divide::<T, R>(block, notes, u32::from(SELF));
    }
    good
}

/// Replaces an element by what `merge` makes of it and a value.
///
/// # Safety
/// `to` can be read and written, and `from` can be read.
#[inline(always)]
unsafe fn join<T: Copy>(to: *mut u8, from: *const u8, merge: impl Fn(T, T) -> T) {
    // SAFETY: the caller's promise.
    unsafe {
        let (to, value) = (to.cast::<T>(), from.cast::<T>().read_unaligned());
        to.write_unaligned(merge(to.read_unaligned(), value));
    }
}

/// The arguments of [`scatter`], for the loops over lanes.
struct Lanes<'a> {
    call: AxisScatter<'a>,
    entries: AxisIndex<'a>,
    steps: [isize; 4],
    /// The base, if blocks of lanes are copied from it one at a time.
    base: Option<Src<'a>>,
    /// The number of entries of a lane.
    count: usize,
    places: usize,
}

impl Lanes<'_> {
    /// Calls `write` with every block of lanes and its notes, on several threads. Returns whether
    /// all calls returned true.
    fn run(&self, space: &mut LanePlan<'_>, write: WriteLanes) -> bool {
        let (parts, width) = (space.parts, space.width);
        let (each, tile) = (space.notes.len() / parts, space.tiles.len() / parts);
        let (notes, tiles) = (Shared(space.notes.as_mut_ptr()), Shared(space.tiles.as_mut_ptr()));
        let lanes = &space.lanes;
        let good = AtomicBool::new(true);
        threads::run(parts, |part| {
            // SAFETY: the buffer has `each` notes for each part, so no other thread has these.
            let notes =
                unsafe { std::slice::from_raw_parts_mut(notes.get().add(part * each), each) };
            let tile = (tile > 0).then(|| tiles.get().wrapping_add(part * tile));
            lanes.runs(threads::part_of(lanes.len(), parts, part), |run| {
                for start in (0..run.len).step_by(width) {
                    let len = (run.len - start).min(width);
                    let lanes = Run { offsets: at(&run, start as isize), len, ..run };
                    let notes = if each > 0 { &mut notes[..len * self.places] } else { &mut [] };
                    // SAFETY: `scatter` has chosen the function by the dtype or the element size.
                    // Parts have different lanes.
                    let write = |lanes: &LaneBlock| unsafe { write(self, lanes, notes) };
                    if !self.worked(lanes, tile, write) {
                        good.store(false, Relaxed);
                    }
                }
            });
        });
        good.into_inner()
    }

    /// Copies a block of lanes from the base, if there is one, and calls `work` with it. With a
    /// tile, the lanes are moved to the tile before that, and to the destination afterwards.
    fn worked(
        &self,
        run: Run<4>,
        tile: Option<*mut u8>,
        work: impl FnOnce(&LaneBlock) -> bool,
    ) -> bool {
        let dst = self.call.dst;
        let (size, step) = (dst.dtype().size(), self.steps[0]);
        let to = dst.origin().wrapping_offset(run.offsets[0]);
        let (old, old_step) = match self.base {
            Some(base) => (base.origin().wrapping_offset(run.offsets[3]), self.steps[3]),
            None => (to.cast_const(), step),
        };
        let row = run.len * size;
        let Some(tile) = tile else {
            // SAFETY: the walk keeps the lanes inside of destination and base, which don't overlap,
            // as `scatter_elements` has checked. No other thread has these lanes. If there is a
            // base, `LanePlan::new` has checked that it has the strides of the destination, and that
            // the block is either one contiguous lane or contiguous at each place.
            unsafe {
                if self.base.is_some() && run.len == 1 && step == size as isize {
                    std::ptr::copy_nonoverlapping(old, to, self.places * size);
                } else if self.base.is_some() {
                    for place in 0..self.places as isize {
                        let (to, from) = (to.offset(place * step), old.offset(place * old_step));
                        std::ptr::copy_nonoverlapping(from, to, row);
                    }
                }
            }
            return work(&LaneBlock { to, step, stride: run.strides[0], run });
        };
        let block = LaneBlock { to: tile, step: row as isize, stride: size as isize, run };
        // SAFETY: as above. `LanePlan::new` allocates tiles only if blocks are contiguous at each
        // place, and a tile has room for `places` rows of `width` elements.
        unsafe {
            for place in 0..self.places {
                let from = old.offset(place as isize * old_step);
                std::ptr::copy_nonoverlapping(from, tile.add(place * row), row);
            }
            let good = work(&block);
            for place in 0..self.places {
                let to = to.offset(place as isize * step);
                std::ptr::copy_nonoverlapping(tile.add(place * row), to, row);
            }
            good
        }
    }

    /// Calls `visit` for each entry of a block with its place, the number of its lane in the block,
    /// and the addresses of the element and of the value, which have `size` bytes. The entries of a
    /// lane come in index order. Skips entries that are out of range, and returns false if there are
    /// any.
    #[inline(always)]
    fn each(
        &self,
        block: &LaneBlock,
        size: usize,
        visit: impl FnMut(usize, usize, *mut u8, *const u8),
    ) -> bool {
        let (size, near) = (size as isize, size_of::<i64>() as isize);
        let steps = [block.step, self.steps[1], self.steps[2]];
        // If the number of lanes is a constant 1, the compiler removes the loop over lanes, and if
        // the steps are constants, the multiplications. (Assignments to 2048 x 2048 `f32` along the
        // last axis on two threads: 2.3 ms instead of 2.5.)
        match block.run.len {
            1 if steps == [size, near, size] => self.each_of(block, 1, [size, near, size], visit),
            1 => self.each_of(block, 1, steps, visit),
            len => self.each_of(block, len, steps, visit),
        }
    }

    /// [`Lanes::each`] for `len` lanes, with the steps from one place, entry and value to the next.
    #[inline(always)]
    fn each_of(
        &self,
        block: &LaneBlock,
        len: usize,
        steps: [isize; 3],
        mut visit: impl FnMut(usize, usize, *mut u8, *const u8),
    ) -> bool {
        // Local copies, which the compiler can keep in registers.
        let LaneBlock { to, stride, run, .. } = *block;
        let ([step, ..], entries, places) = (steps, self.entries, self.places);
        let values = self.call.values.origin();
        let mut good = true;
        for j in 0..self.count as isize {
            if len > 1 {
                // The next entries of the index and the next values may be pages away, so the
                // hardware does not prefetch them.
                let ahead = |n: usize| run.offsets[n] + (j + AHEAD) * steps[n];
                entries.ask_for(ahead(1), len);
                prefetch(values.wrapping_offset(ahead(2)), len * stride.unsigned_abs());
            }
            for lane in 0..len {
                let [_, entry, from, _] = at(&run, lane as isize);
                // SAFETY: the walk keeps the lane inside of index and values, and `j` is below
                // their length along the axis. `AxisIndex::at` checks the place.
                unsafe {
                    let Some(place) = entries.at(entry + j * steps[1], places) else {
                        good = false;
                        continue;
                    };
                    let to = to.offset(lane as isize * stride + place as isize * step);
                    visit(place, lane, to, values.offset(from + j * steps[2]));
                }
            }
        }
        good
    }

    /// Divides the sums of a block by their counts, except where the count is still `first`, its
    /// initial value, because no entry names the place.
    fn divide<T: Copy, R: Reducer<T>>(&self, block: &LaneBlock, notes: &[u32], first: u32) {
        let size = size_of::<T>() as isize;
        // A single contiguous lane has one loop over its places, which the compiler can vectorize.
        if block.run.len == 1 && block.step == size {
            // SAFETY: there is one count for each place, and the elements of the lane are
            // contiguous.
            return unsafe {
                divide_each::<T, R>(notes, first, |place| block.to.cast::<T>().add(place));
            };
        }
        for (place, counts) in notes.chunks_exact(block.run.len).enumerate() {
            // SAFETY: there is one count for each place and lane, so both lie inside of the block.
            // No other thread has this lane.
            unsafe {
                let to = block.to.offset(place as isize * block.step);
                // The compiler can vectorize a loop with a constant stride.
                if block.stride == size {
                    divide_each::<T, R>(counts, first, |lane| to.cast::<T>().add(lane));
                } else {
                    let at = |lane: usize| to.offset(lane as isize * block.stride).cast::<T>();
                    divide_each::<T, R>(counts, first, at);
                }
            }
        }
    }
}

/// Divides each element by its count, unless the count is at most `first`.
///
/// # Safety
/// The address that `at` gives for each count can be read and written.
#[inline(always)]
unsafe fn divide_each<T: Copy, R: Reducer<T>>(
    counts: &[u32],
    first: u32,
    at: impl Fn(usize) -> *mut T,
) {
    for (lane, &count) in counts.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let sum = at(lane).read_unaligned();
            let mean = R::finish(R::widen(sum), count.max(1) as usize);
            at(lane).write_unaligned(select_unpredictable(count <= first, sum, mean));
        }
    }
}

/// A block of lanes that are processed together: where they are in all layouts, and where their
/// elements are while they are written, in the destination or in a tile.
#[derive(Clone, Copy)]
struct LaneBlock {
    run: Run<4>,
    to: *mut u8,
    /// The distance in bytes from one place to the next.
    step: isize,
    /// The distance in bytes from one lane to the next.
    stride: isize,
}
