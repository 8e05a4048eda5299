//! Reads single elements.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{DType, Layout, Result, Strides, resized};

use super::{AHEAD, Entries, LANES, at, small, tile};
use crate::kernels::positions::Positions;
use crate::kernels::reducer::prefetch;
use crate::kernels::rows::Index;
use crate::number::dispatch_width;
use crate::walk::{Run, Walk};
use crate::{Dst, Src};

/// `dst[.., j, ..] = src[.., index[.., j, ..], ..]` along `axis`, where `dst` is fresh. `entries` is
/// the index stretched to the shape of `dst`; off the axis `src` has that shape too.
///
/// # Errors
/// An index out of range of the axis.
pub fn gather_elements(
    dst: Dst<'_>,
    src: Src<'_>,
    axis: usize,
    index: Index<'_>,
    entries: Src<'_>,
) -> Result<()> {
    dst.expect_apart(&src);
    dst.expect_apart(&entries);
    if small::gather(dst, src, axis, &index) {
        return Ok(());
    }
    // What is fresh is thrown away when an entry turns out to be wrong; a checked copy tells which.
    if entries.dtype() == DType::I64 && gather(dst, src, axis, &Entries::raw(entries)) {
        return Ok(());
    }
    let positions = index.positions(axis, src.layout().shape()[axis])?;
    let layout = positions.stretched(entries.layout().shape());
    let done = gather(dst, src, axis, &Entries::checked(&positions, &layout));
    assert!(done, "positions were checked");
    Ok(())
}

/// `dst[i] = src[index[i]]` along `axis`, lane by lane.
pub(in crate::kernels) fn gather_lanes(dst: Dst<'_>, src: Src<'_>, axis: usize, index: &Positions) {
    let mut strides = vec![0; dst.layout().rank()];
    strides[axis] = size_of::<i64>() as isize;
    let layout = Layout::strided(dst.layout().shape().into(), strides.into(), 0);
    let done = gather(dst, src, axis, &Entries::checked(index, &layout));
    assert!(done, "positions were checked");
}

/// False when an entry is out of range: then what is in its place has no meaning.
fn gather(dst: Dst<'_>, src: Src<'_>, axis: usize, entries: &Entries<'_>) -> bool {
    let size = dst.same_size(&src);
    assert_eq!(dst.layout().shape(), entries.layout.shape(), "an entry for each element");
    let places = src.layout().shape()[axis];
    if places == 0 {
        // There is no element that could be read in the place of a wrong one.
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
    dispatch_width!(size, W => walk.parallel(3 * size + 8, |run| {
        // Copies that nothing points to are kept in registers.
        let (to_origin, from_origin, entries) = (dst.origin(), src.origin(), *entries);
        let mut all = true;
        let mut one = |[to, entry, from]: [isize; 3], step: isize| {
            // SAFETY: the walk stays inside of all layouts, the position inside of the axis.
            unsafe {
                let place = entries.at(entry, places);
                all &= place.is_some();
                let from = from + place.unwrap_or(0) as isize * step;
                let word = from_origin.offset(from).cast::<W>().read_unaligned();
                to_origin.offset(to).cast::<W>().write_unaligned(word);
            }
        };
        let (width, entry) = (size_of::<W>() as isize, size_of::<i64>() as isize);
        if run.strides == [width, entry, 0] && step == width {
            // Along contiguous lanes.
            let [to, index, from] = run.offsets;
            for k in 0..run.len as isize {
                one([to + k * width, index + k * entry, from], width);
            }
        } else {
            (0..run.len as isize).for_each(|k| one(at(&run, k), step));
        }
        note(all);
    }));
    good.into_inner()
}

/// Lanes that lie side by side, whose elements lie far apart: a block of them is moved to where they
/// lie close, and read there.
struct Tiled<'a> {
    dst: Dst<'a>,
    src: Src<'a>,
    entries: Entries<'a>,
    /// Of destination, index and source.
    lanes: Walk<3>,
    steps: [isize; 3],
    places: usize,
    count: usize,
}

impl<'a> Tiled<'a> {
    /// None when there is no need.
    fn of(dst: Dst<'a>, src: Src<'a>, axis: usize, entries: &Entries<'a>) -> Option<Self> {
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
        // SAFETY: the run lies inside of all lanes, `j` and places inside of their axes; each place
        // of the tile is written before it is read; no other thread has these lanes.
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
                let ahead = self.entries.origin.wrapping_offset(ahead);
                prefetch(ahead, run.len * size_of::<i64>());
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

/// The layout with `axis` held at its position 0 and repeated `len` times.
fn hold_axis(layout: &Layout, axis: usize, len: usize) -> Layout {
    let mut strides = Strides::from_slice(layout.strides());
    strides[axis] = 0;
    Layout::strided(resized(layout.shape(), axis, len), strides, layout.offset())
}
