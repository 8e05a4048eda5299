//! Gathers single elements along an axis.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{DType, Layout, Result, Strides, resized};

use super::{AHEAD, AxisIndex, LANES, at, small, tile};
use crate::arch::{self, LINE};
use crate::kernels::boxes::{Packed, or_packed};
use crate::kernels::positions::{Positions, from_front, is_inside};
use crate::kernels::reducer::prefetch;
use crate::kernels::rows::{Index, SPARSE};
use crate::number::dispatch_width;
use crate::once::read_once;
use crate::tuning::SHORT_LANE;
use crate::view::Target;
use crate::walk::{Run, Walk};
use crate::{Dst, Src, threads};

/// `dst[.., j, ..] = src[.., index[.., j, ..], ..]` along `axis`, where `dst` is fresh. `entries`
/// is the index, broadcast to the shape of `dst`. On all axes but `axis`, `src` has the shape of
/// `dst`.
///
/// # Errors
/// An index value is out of range, or there is no memory for a copy of the index.
pub fn gather_elements(
    dst: Dst<'_>,
    src: Src<'_>,
    axis: usize,
    index: Index<'_>,
    entries: Src<'_>,
) -> Result<()> {
    let dst = dst.into_target();
    dst.expect_source(&src);
    dst.expect_apart(&entries);
    dst.expect_apart(&index.values);
    if small::gather(dst, src, axis, &index) {
        return Ok(());
    }
    let places = src.layout().shape()[axis];
    let many = dst.layout().shape()[axis] >= places / SPARSE;
    let packed = [many.then(|| Packed::of(src)).flatten(), Packed::of(entries)];
    let [src, entries] = or_packed([src, entries], &packed);
    // A fresh result is discarded if an entry turns out to be out of range, so the index can be
    // checked while it is used. The checked copy below then finds the entry for the error message.
    if entries.dtype() == DType::I64 && gather(dst, src, axis, &AxisIndex::raw(entries), false) {
        return Ok(());
    }
    let positions = index.positions(axis, places)?;
    let layout = positions.stretched(entries.layout().shape());
    let done = gather(dst, src, axis, &AxisIndex::checked(&positions, &layout, places), true);
    assert!(done, "positions were checked");
    Ok(())
}

/// `dst[i] = src[index[i]]` along `axis`, for a 1-D index, lane by lane.
pub(in crate::kernels) fn gather_lanes(
    dst: Target<'_>,
    src: Src<'_>,
    axis: usize,
    index: &Positions,
) {
    let mut strides = vec![0; dst.layout().rank()];
    strides[axis] = size_of::<i64>() as isize;
    let layout = Layout::over(dst.layout().shape(), &strides, 0);
    let entries = AxisIndex::checked(index, &layout, src.layout().shape()[axis]);
    let done = gather(dst, src, axis, &entries, true);
    assert!(done, "positions were checked");
}

/// Gathers all entries. Returns false if an entry is out of range; then its element of `dst` is
/// unspecified. With `checked`, the entries are checked positions and need not be checked again.
fn gather(
    dst: Target<'_>,
    src: Src<'_>,
    axis: usize,
    entries: &AxisIndex<'_>,
    checked: bool,
) -> bool {
    let size = dst.same_size(&src);
    assert_eq!(dst.layout().shape(), entries.layout.shape(), "an entry for each element");
    let places = src.layout().shape()[axis];
    if places == 0 {
        // The loops below read position 0 for an entry that is out of range, and there is none
        // here.
        return dst.layout().numel() == 0;
    }
    let good = AtomicBool::new(true);
    let note = |all: bool| {
        if !all {
            good.store(false, Relaxed);
        }
    };
    if let Some(tiled) = Tiled::of(dst, src, axis, entries) {
        dispatch_width!(size, W => tiled.run::<W>(note));
        return good.into_inner();
    }
    let step = src.layout().strides()[axis];
    let lanes = hold_axis(src.layout(), axis, dst.layout().shape()[axis]);
    let walk = Walk::in_memory_order([dst.layout(), entries.layout, &lanes]);
    dispatch_width!(size, W => threads::split(walk.len(), 3 * size + 8, |range| {
        let (mut space, short) = ([0; CHUNK], SHORT_LANE.get());
        walk.runs(range, |run| {
            // Entries name elements of a lane in any order, which the hardware prefetcher can't
            // predict. If most cache lines of a lane are needed, the next lane is prefetched piece
            // by piece while this lane is read. (2048 x 2048 `f32` along the last axis: 4.1 ms, 5.9
            // ms if each lane is prefetched as a whole.)
            let (lane, near) = (places.saturating_mul(size), step == size as isize);
            let whole = near && run.strides[2] == 0 && lane <= short;
            let ahead = whole && run.len.saturating_mul(LINE) >= lane;
            let piece = if ahead { (lane * CHUNK).div_ceil(run.len) } else { 0 };
            for start in (0..run.len).step_by(CHUNK) {
                let len = (run.len - start).min(CHUNK);
                let [to, entry, from] = at(&run, start as isize);
                let next = from + (lane + start / CHUNK * piece) as isize;
                prefetch(src.origin().wrapping_offset(next), piece);
                // SAFETY: the walk stays inside of all layouts, whose shapes it has compared. The
                // callers have checked that `dst` does not overlap the sources. Checked entries are
                // positions below `places`, as `AxisIndex::checked` has checked, and nobody writes
                // them. Other entries are copied and checked by `read_places`. Threads have
                // different runs.
                unsafe {
                    let chunk = entries.origin.offset(entry).cast::<i64>();
                    let named = if checked && run.strides[1] == ENTRY {
                        std::slice::from_raw_parts(chunk, len)
                    } else {
                        note(read_places(&mut space[..len], chunk, run.strides[1], places));
                        &space[..len]
                    };
                    let (to, from) = (dst.origin().offset(to), src.origin().offset(from));
                    move_places::<W>((to, run.strides[0]), (from, run.strides[2]), step, named);
                }
            }
        });
    }));
    good.into_inner()
}

/// The distance in bytes from one contiguous entry to the next.
const ENTRY: isize = size_of::<i64>() as isize;

/// The number of entries that are checked before the first of them is used. The compiler vectorizes
/// a loop that only checks, and a loop that only moves elements has no branches. (256 x 256 `f32`
/// along axis 0: 59 us instead of 79.)
const CHUNK: usize = 128;

/// Writes to `to` the positions on an axis of `size` that the entries at `from` name, and position
/// 0 for an entry that is out of range. Returns whether all entries are in range.
///
/// # Safety
/// As many entries as `to` has, `stride` bytes apart, can be read.
unsafe fn read_places(to: &mut [i64], from: *const i64, stride: isize, size: usize) -> bool {
    let (done, mut all) = match stride == ENTRY {
        // SAFETY: the caller's promise.
        true => unsafe { arch::read_places(to, from, size) },
        false => (0, true),
    };
    for (k, to) in to.iter_mut().enumerate().skip(done) {
        // SAFETY: the caller's promise. Another thread may change the entries, so each is loaded
        // once.
        let value = unsafe { read_once(from.byte_offset(k as isize * stride)) };
        let at = from_front(value, size);
        let inside = is_inside(at, size);
        all &= inside;
        *to = if inside { at } else { 0 };
    }
    all
}

/// `to[k] = from[k][named[k]]`, where `from[k]` is a lane whose elements are `step` bytes apart.
///
/// # Safety
/// All of these elements can be read and written, and `to` does not overlap `from`.
#[inline(always)]
unsafe fn move_places<W: Copy>(
    (to, to_stride): (*mut u8, isize),
    (from, from_stride): (*const u8, isize),
    step: isize,
    named: &[i64],
) {
    let width = size_of::<W>() as isize;
    // SAFETY: the caller's promise.
    unsafe {
        if to_stride == width && from_stride == 0 && step == width {
            // All entries are of one contiguous lane: constant strides make a faster loop.
            let (to, from) = (to.cast::<W>(), from.cast::<W>());
            for (k, &place) in named.iter().enumerate() {
                to.add(k).write_unaligned(from.offset(place as isize).read_unaligned());
            }
        } else {
            for (k, &place) in named.iter().enumerate() {
                let from = from.offset(k as isize * from_stride + place as isize * step);
                let to = to.offset(k as isize * to_stride);
                to.cast::<W>().write_unaligned(from.cast::<W>().read_unaligned());
            }
        }
    }
}

/// A gather from lanes that are adjacent in memory but whose elements are far apart. A block of
/// lanes is copied to a contiguous tile and read there.
struct Tiled<'a> {
    dst: Target<'a>,
    src: Src<'a>,
    entries: AxisIndex<'a>,
    /// The lanes of destination, index and source.
    lanes: Walk<3>,
    steps: [isize; 3],
    places: usize,
    /// The number of entries of a lane.
    count: usize,
}

impl<'a> Tiled<'a> {
    /// Returns `None` if tiles would be no faster.
    fn of(dst: Target<'a>, src: Src<'a>, axis: usize, entries: &AxisIndex<'a>) -> Option<Self> {
        let size = dst.dtype().size();
        let layouts = [dst.layout(), entries.layout, src.layout()];
        let steps = layouts.map(|layout| layout.strides()[axis]);
        let (places, count) = (src.layout().shape()[axis], dst.layout().shape()[axis]);
        if tile(places, steps[2], LANES * size, count) == 0 {
            return None;
        }
        let lanes = Walk::of_rows(layouts, axis);
        let [_, _, near] = lanes.run_strides();
        let side_by_side = near == size as isize && lanes.run_len() >= LANES;
        let entries = *entries;
        side_by_side.then_some(Tiled { dst, src, entries, lanes, steps, places, count })
    }

    fn run<W: Copy>(&self, note: impl Fn(bool) + Sync) {
        let cost = self.count.saturating_mul(3 * size_of::<W>() + size_of::<i64>());
        self.lanes.parallel(cost, |run| {
            let mut tile = Box::new_uninit_slice(self.places * run.len.min(LANES));
            for start in (0..run.len).step_by(LANES) {
                let len = (run.len - start).min(LANES);
                let block = Run { offsets: at(&run, start as isize), len, ..run };
                note(self.block::<W>(&block, &mut tile));
            }
        });
    }

    fn block<W: Copy>(&self, run: &Run<3>, tile: &mut [MaybeUninit<W>]) -> bool {
        let tile = tile[..self.places * run.len].as_mut_ptr().cast::<W>();
        let mut all = true;
        // SAFETY: the walk keeps the run inside of all views; `j` is below the length of the axis,
        // and `AxisIndex::at` checks the place. The source's lanes are contiguous at each place, as
        // `Tiled::of` has checked, so a row of the tile is copied at once. The whole tile is
        // written before it is read. No other thread has these lanes.
        unsafe {
            for place in 0..self.places {
                let by = run.offsets[2] + place as isize * self.steps[2];
                let row = self.src.origin().offset(by).cast::<W>();
                let to = tile.add(place * run.len);
                std::ptr::copy_nonoverlapping(
                    row.cast::<u8>(),
                    to.cast(),
                    run.len * size_of::<W>(),
                );
            }
            for j in 0..self.count as isize {
                let ahead = run.offsets[1] + (j + AHEAD) * self.steps[1];
                self.entries.ask_for(ahead, run.len);
                for lane in 0..run.len {
                    let [to, entry, _] = at(run, lane as isize);
                    let place = self.entries.at(entry + j * self.steps[1], self.places);
                    all &= place.is_some();
                    let word = tile.add(place.unwrap_or(0) * run.len + lane).read();
                    let to = self.dst.origin().offset(to + j * self.steps[0]);
                    to.cast::<W>().write_unaligned(word);
                }
            }
        }
        all
    }
}

/// Returns `layout` with the elements at position 0 of `axis` repeated `len` times along it.
fn hold_axis(layout: &Layout, axis: usize, len: usize) -> Layout {
    let mut strides = Strides::from_slice(layout.strides());
    strides[axis] = 0;
    Layout::over(&resized(layout.shape(), axis, len), &strides, layout.offset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_loop_over_entries() {
        let mut values: Vec<i64> = (0..900).map(|k| (k * 7919 + 13) % 100 - 50).collect();
        for (at, bad) in [(0, None), (300, Some(50)), (301, Some(-51)), (302, Some(i64::MIN))] {
            if let Some(bad) = bad {
                values[at] = bad;
            }
            for (stride, len) in [(1, 0), (1, 1), (1, 256), (1, 900), (3, 7), (3, 300)] {
                let own: Vec<i64> = values.iter().step_by(stride).take(len).copied().collect();
                let places = own.iter().map(|&value| match value {
                    0..50 => value,
                    -50..0 => value + 50,
                    _ => 0,
                });
                let places: Vec<i64> = places.collect();
                let inside = own.iter().all(|value| (-50..50).contains(value));
                let step = stride as isize * ENTRY;
                for level in arch::Level::all() {
                    let _forced = arch::force(level);
                    let mut to = vec![-1; len];
                    // SAFETY: `len` entries at this stride lie inside of the vector.
                    assert_eq!(unsafe { read_places(&mut to, values.as_ptr(), step, 50) }, inside);
                    assert_eq!(to, places);
                }
            }
        }
    }
}
