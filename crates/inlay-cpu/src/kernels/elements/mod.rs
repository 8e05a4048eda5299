//! Single elements at the positions of an index of the tensor's own rank.
//!
//! A lane is the elements that differ only in their place on the axis. Lanes are independent, so
//! threads take lanes, and each lane is worked in index order.

mod direct;
mod gather;
mod grouped;
mod small;
mod winners;

use std::ops::Range;

use inlay_core::{Combine, DType, Layout, Reduce, Result, resized};

use super::copy::copy_to;
use super::groups::is_dense;
use super::positions::{Positions, all_inside, from_front, is_inside};
use super::reducer::{Reducer, dispatch_reduce, prefetch};
use super::rows::{Index, scatter_rows_to};
use crate::once::read_once;
use crate::tuning::TILE;
use crate::view::{Span, Target};
use crate::walk::{Run, Walk};
use crate::{Dst, Src, threads};

pub use gather::gather_elements;
pub(super) use gather::gather_lanes;
pub use winners::winning_elements;

/// `dst[.., index[.., j, ..], ..] (combine)= values[.., j, ..]` along `axis`, for j in order.
/// `entries` is the index stretched to the shape of `values`; off the axis `dst` may be larger.
/// Where `base` is given, `dst` is fresh and starts as its copy.
///
/// # Errors
/// An index out of range of the axis. Then nothing was written, unless `dst` is fresh.
pub fn scatter_elements(
    dst: Dst<'_>,
    base: Option<Src<'_>>,
    axis: usize,
    index: Index<'_>,
    entries: Src<'_>,
    values: Src<'_>,
    combine: Combine,
) -> Result<()> {
    let dst = dst.into_target();
    dst.expect_source(&values);
    dst.expect_apart(&entries);
    dst.expect_apart(&index.values);
    let one_dtype = combine == Combine::Assign || dst.dtype() == values.dtype();
    assert!(one_dtype, "numbers of one dtype are reduced");
    assert_eq!(entries.layout().shape(), values.layout().shape(), "an entry for each value");
    if let Some(base) = base {
        dst.expect_source(&base);
        assert_eq!(base.layout().shape(), dst.layout().shape(), "a copy of the base");
    }
    let call = AxisScatter { dst, axis, values, combine };
    if small::scatter(&call, base, &index) {
        return Ok(());
    }
    let strategy = call.strategy(entries.layout(), base.is_some());
    // As it lies, an index is checked where it is used: before, too, when something that was there
    // already is written.
    if strategy == Strategy::Direct
        && entries.dtype() == DType::I64
        && (base.is_some() || all_inside(index.values, call.places()))
    {
        let space = direct::Space::new(&call, base, entries.layout())?;
        if direct::scatter(&call, &AxisIndex::raw(entries), space) || base.is_none() {
            return Ok(());
        }
    }
    let positions = index.positions(axis, call.places())?;
    let layout = positions.stretched(entries.layout().shape());
    let entries = AxisIndex::checked(&positions, &layout, call.places());
    match strategy {
        Strategy::Direct => {
            let space = direct::Space::new(&call, base, &layout)?;
            let done = direct::scatter(&call, &entries, space);
            assert!(done, "positions were checked");
            Ok(())
        }
        Strategy::Rows => {
            copy_base(dst, base);
            long_lanes(&call, &entries)
        }
        Strategy::Grouped => grouped::scatter(&call, base, &entries),
    }
}

fn copy_base(dst: Target<'_>, base: Option<Src<'_>>) {
    if let Some(base) = base {
        copy_to(dst, base);
    }
}

/// How elements are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// Lane by lane, in index order.
    Direct,
    /// The entries of a lane are brought together first: where a partial result does not fit into an
    /// element, or an index is too thin for notes about every place.
    Grouped,
    /// Fewer lanes than threads: each is a scatter of rows of one element, in which threads share.
    Rows,
}

/// Entries of a lane from which threads may share it: one thread takes 0.1 ms for fewer.
const LONG_LANE: usize = 1 << 16;

/// Lanes that are worked side by side where they are neighbours in memory: whole lines of a cache,
/// few enough for a tile of thousands of places.
const LANES: usize = 32;

/// Rows of index and values that are asked for ahead of their use.
const AHEAD: isize = 4;

/// Elements of one lane that lie at least so far apart get in each other's way in a cache, which
/// keeps few lines of equal low bits.
const FAR: usize = 2 << 10;

/// The bytes of a tile for lanes of `places`, `step` apart and `row` bytes together; 0 where they
/// are better worked where they lie. (4096x1024 f32 along axis 0: with tiles and what is asked for
/// ahead a sum takes 7.5 ms and a take 5.6, with neither 17 and 11.7.)
fn tile(places: usize, step: isize, row: usize, count: usize) -> usize {
    let bytes = places.saturating_mul(row);
    let far = step.unsigned_abs() >= FAR;
    if far && bytes <= TILE.get() && count >= places / 2 { bytes } else { 0 }
}

/// What a scatter of elements is given, but for the index.
#[derive(Clone, Copy)]
struct AxisScatter<'a> {
    dst: Target<'a>,
    axis: usize,
    values: Src<'a>,
    combine: Combine,
}

impl AxisScatter<'_> {
    fn places(&self) -> usize {
        self.dst.layout().shape()[self.axis]
    }

    fn strategy(&self, entries: &Layout, is_fresh: bool) -> Strategy {
        let count = entries.shape()[self.axis];
        if count >= LONG_LANE {
            let lanes = entries.numel() / count;
            // Without memory for one of several lanes, those before it would be written already.
            if lanes < threads::num_threads() && (lanes == 1 || is_fresh) {
                return Strategy::Rows;
            }
        }
        let Combine::Reduce { reduce, include_self } = self.combine else {
            return Strategy::Direct;
        };
        let in_place = dispatch_reduce!(reduce, self.dst.dtype(), (T, R) => {
            <R as Reducer<T>>::IN_PLACE
        });
        let notes = !include_self || reduce == Reduce::Mean;
        // There is a note for every place, which counts in 32 bits.
        let noted = is_dense(count, self.places()) && count < u32::MAX as usize;
        if in_place && (noted || !notes) { Strategy::Direct } else { Strategy::Grouped }
    }

    /// The lanes of destination, index, values and `old`, and the steps from element to element of one.
    fn lanes(&self, entries: &Layout, old: &Layout) -> (Walk<4>, [isize; 4]) {
        let corner = |layout: &Layout| corner(layout, entries.shape(), self.axis);
        let layouts = [&corner(self.dst.layout()), entries, self.values.layout(), &corner(old)];
        let steps = layouts.map(|layout| layout.strides()[self.axis]);
        (Walk::of_rows(layouts, self.axis), steps)
    }
}

/// Each lane as a scatter of rows of one element.
fn long_lanes(call: &AxisScatter<'_>, entries: &AxisIndex<'_>) -> Result<()> {
    let (lanes, steps) = call.lanes(entries.layout, call.dst.layout());
    let (places, count) = (call.places(), entries.layout.shape()[call.axis]);
    let line = |len: usize, step: isize| Layout::strided([len][..].into(), [step][..].into(), 0);
    let (to, index, from) = (line(places, steps[0]), line(count, steps[1]), line(count, steps[2]));
    let mut done = Ok(());
    lanes.runs(0..lanes.len(), |run| {
        for lane in 0..run.len as isize {
            let at = at(&run, lane);
            // SAFETY: the lane lies inside of views that are given to this call, and of the index,
            // and so does each of its elements.
            let (to, values, from) = unsafe {
                (
                    call.dst.part(at[0], &to),
                    Src::new(entries.origin.offset(at[1]), &index, DType::I64, entries.span),
                    call.values.part(at[2], &from),
                )
            };
            let index = Index { op: "put_along_axis", arg: "index", values };
            if done.is_ok() {
                done = scatter_rows_to(to, None, 0, index, from, call.combine);
            }
        }
    });
    done
}

/// The index of a call along an axis: values broadcast to the elements, read by byte offset.
#[derive(Clone, Copy)]
struct AxisIndex<'a> {
    origin: *const u8,
    layout: &'a Layout,
    span: Span,
}

// SAFETY: an address of values that are only read.
unsafe impl Send for AxisIndex<'_> {}
// SAFETY: as above.
unsafe impl Sync for AxisIndex<'_> {}

impl<'a> AxisIndex<'a> {
    fn raw(index: Src<'a>) -> Self {
        assert_eq!(index.dtype(), DType::I64, "an index that is read as it lies");
        AxisIndex { origin: index.origin(), layout: index.layout(), span: index.span() }
    }

    /// The positions of an index on an axis of `places`.
    fn checked(index: &'a Positions, layout: &'a Layout, places: usize) -> Self {
        index.expect_within(places);
        let inside = layout.extent(size_of::<i64>());
        let inside = inside.is_some_and(|range| range.end <= size_of_val(index.values()));
        assert!(inside || layout.numel() == 0, "the index layout stays inside of the index");
        let Range { start, end } = index.values().as_ptr_range();
        let span = Span { low: start.addr(), high: end.addr() };
        AxisIndex { origin: start.cast(), layout, span }
    }

    /// The position on an axis of `size`, or `None` when it is out of range. Another thread may
    /// change a foreign index: [`Entries::read`] loads it once, so what was checked is used.
    ///
    /// # Safety
    /// The offset is that of an element of the layout.
    #[inline(always)]
    unsafe fn at(&self, offset: isize, size: usize) -> Option<usize> {
        // SAFETY: the caller's promise.
        let at = from_front(unsafe { self.read(offset) }, size);
        is_inside(at, size).then_some(at as usize)
    }

    /// The value as it is, loaded once.
    ///
    /// # Safety
    /// As for [`AxisIndex::at`].
    #[inline(always)]
    unsafe fn read(&self, offset: isize) -> i64 {
        // SAFETY: the caller's promise.
        unsafe { read_once(self.origin.offset(offset).cast::<i64>()) }
    }

    /// Asks for `count` entries from an offset on, wherever that is.
    #[inline(always)]
    fn ask_for(&self, offset: isize, count: usize) {
        prefetch(self.origin.wrapping_offset(offset), count * size_of::<i64>());
    }
}

fn at<const N: usize>(run: &Run<N>, k: isize) -> [isize; N] {
    std::array::from_fn(|n| run.offsets[n] + k * run.strides[n])
}

/// The part of `layout` that has `shape` off the axis, from index 0 on.
fn corner(layout: &Layout, shape: &[usize], axis: usize) -> Layout {
    let sizes = resized(shape, axis, layout.shape()[axis]);
    assert!(sizes.iter().zip(layout.shape()).all(|(part, whole)| part <= whole), "a part of it");
    Layout::over(&sizes, layout.strides(), layout.offset())
}
