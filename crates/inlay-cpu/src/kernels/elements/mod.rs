//! Scatter and gather of single elements, by an index that has the rank of the tensor.
//!
//! A *lane* is all elements that differ only in their position on the axis. A *place* is a position
//! of a lane of the destination (for a gather, of the source). An *entry* is an element of the
//! index. Lanes are independent of each other, so each thread takes some of the lanes and processes
//! the entries of each lane in index order.

mod direct;
mod gather;
mod grouped;
mod small;
mod winners;

use std::ops::Range;

use inlay_core::{Combine, DType, Layout, Reduce, Result, resized};

use super::boxes::{Packed, or_packed};
use super::copy::copy_to;
use super::groups::is_dense;
use super::positions::{Positions, all_inside, from_front, is_inside};
use super::reducer::{is_in_place, prefetch};
use super::rows::{Index, base_or_copy, scatter_rows_to};
use crate::once::read_once;
use crate::tuning::TILE;
use crate::view::{Span, Target};
use crate::walk::{Run, Walk};
use crate::{Dst, Src, threads};

pub use gather::gather_elements;
pub(super) use gather::gather_lanes;
pub use winners::winning_elements;

/// `dst[.., index[.., j, ..], ..] (combine)= values[.., j, ..]` along `axis`, for j in order.
/// `entries` is the index, broadcast to the shape of `values`. On all axes but `axis`, `dst` may be
/// larger than `values`. If `base` is given, `dst` is fresh, and the elements of `base` are copied
/// to it first.
///
/// # Errors
/// An index value is out of range, or there is no memory for scratch buffers. Then nothing was
/// written, unless `dst` is fresh.
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
    let packed = [values, entries].map(Packed::of_transposed);
    let [values, entries] = or_packed([values, entries], &packed);
    let base = base_or_copy(dst, base);
    let call = AxisScatter { values, ..call };
    let strategy = call.strategy(entries.layout(), base.is_some());
    // An `i64` index is read without a copy, and each value is checked where it is used. In place,
    // the whole index is also checked first, so that a call that fails writes nothing. A value that
    // another thread makes invalid after that check is skipped.
    if strategy == Strategy::Direct
        && entries.dtype() == DType::I64
        && (base.is_some() || all_inside(index.values, call.places()))
    {
        let plan = direct::LanePlan::new(&call, base, entries.layout())?;
        if direct::scatter(&call, &AxisIndex::raw(entries), plan) || base.is_none() {
            return Ok(());
        }
    }
    let positions = index.positions(axis, call.places())?;
    let layout = positions.stretched(entries.layout().shape());
    let entries = AxisIndex::checked(&positions, &layout, call.places());
    match strategy {
        Strategy::Direct => {
            let plan = direct::LanePlan::new(&call, base, &layout)?;
            let done = direct::scatter(&call, &entries, plan);
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

/// How the elements of a call are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// The entries of a lane are combined with their places in index order.
    Direct,
    /// The entries of a lane are grouped by place first. It is used if an element can't store a
    /// partial result, or if the index is too sparse for a count per place.
    Grouped,
    /// Each lane is a scatter of rows of one element, which uses several threads. It is used for a
    /// few long lanes.
    Rows,
}

/// The fewest entries of a lane for which several threads share the lane. One thread takes about
/// 0.1 ms for a lane of this length.
const LONG_LANE: usize = 1 << 16;

/// The most lanes of a block, which are processed together if they are adjacent in memory. So many
/// elements fill whole cache lines, and a tile of thousands of places still fits into the cache.
const LANES: usize = 32;

/// The index and the values of a block of lanes are prefetched this many positions ahead.
const AHEAD: isize = 4;

/// Elements of a lane that are at least this many bytes apart share few cache sets and evict each
/// other.
const FAR: usize = 2 << 10;

/// Returns the bytes of a tile that holds a block of lanes: `places` rows of `row` bytes, one row
/// for each place. In the tensor the rows are `step` bytes apart. Returns 0 if a tile would be no
/// faster for `count` entries per lane. (4096 x 1024 `f32` along axis 0: with tiles and prefetches
/// a sum takes 7.5 ms and a gather 5.6 ms, without both 17 ms and 11.7 ms.)
fn tile(places: usize, step: isize, row: usize, count: usize) -> usize {
    let bytes = places.saturating_mul(row);
    let far = step.unsigned_abs() >= FAR;
    if far && bytes <= TILE.get() && count >= places / 2 { bytes } else { 0 }
}

/// The arguments of a scatter of elements without the index, checked by [`scatter_elements`].
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
            // Each lane allocates scratch buffers. If that fails for a later lane, the lanes before
            // it are already written, which is allowed only if the destination is fresh.
            if lanes < threads::num_threads() && (lanes == 1 || is_fresh) {
                return Strategy::Rows;
            }
        }
        let Combine::Reduce { reduce, include_self } = self.combine else {
            return Strategy::Direct;
        };
        let in_place = is_in_place(reduce, self.dst.dtype());
        let notes = !include_self || reduce == Reduce::Mean;
        // `Direct` keeps a `u32` count for every place.
        let noted = is_dense(count, self.places()) && count < u32::MAX as usize;
        if in_place && (noted || !notes) { Strategy::Direct } else { Strategy::Grouped }
    }

    /// Returns a walk over the lanes of destination, index, values and `old`, and for each of them
    /// the distance in bytes from one element of a lane to the next.
    fn lanes(&self, entries: &Layout, old: &Layout) -> (Walk<4>, [isize; 4]) {
        let corner = |layout: &Layout| corner(layout, entries.shape(), self.axis);
        let layouts = [&corner(self.dst.layout()), entries, self.values.layout(), &corner(old)];
        let steps = layouts.map(|layout| layout.strides()[self.axis]);
        (Walk::of_rows(layouts, self.axis), steps)
    }
}

/// [`Strategy::Rows`]: each lane is a scatter of rows of one element.
fn long_lanes(call: &AxisScatter<'_>, entries: &AxisIndex<'_>) -> Result<()> {
    let (lanes, steps) = call.lanes(entries.layout, call.dst.layout());
    let (places, count) = (call.places(), entries.layout.shape()[call.axis]);
    let line = |len: usize, step: isize| Layout::over(&[len], &[step], 0);
    let (to, index, from) = (line(places, steps[0]), line(count, steps[1]), line(count, steps[2]));
    let mut done = Ok(());
    lanes.runs(0..lanes.len(), |run| {
        for lane in 0..run.len as isize {
            let at = at(&run, lane);
            // SAFETY: the walk is over the lanes of `dst`, index and values, so each lane lies
            // inside of its view; its length and step are those of the view along the axis.
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

/// An index of `i64` values, broadcast to the shape of the elements that it selects. Values are
/// read by byte offset.
#[derive(Clone, Copy)]
struct AxisIndex<'a> {
    origin: *const u8,
    layout: &'a Layout,
    span: Span,
}

// SAFETY: the values are only read, and they may be read from any thread for `'a`.
unsafe impl Send for AxisIndex<'_> {}
// SAFETY: as above.
unsafe impl Sync for AxisIndex<'_> {}

impl<'a> AxisIndex<'a> {
    fn raw(index: Src<'a>) -> Self {
        assert_eq!(index.dtype(), DType::I64, "only an i64 index is read without a copy");
        AxisIndex { origin: index.origin(), layout: index.layout(), span: index.span() }
    }

    /// Returns an index over a checked private copy. Panics unless all positions are below `places`
    /// and `layout` stays inside of the copy.
    fn checked(index: &'a Positions, layout: &'a Layout, places: usize) -> Self {
        index.expect_within(places);
        let inside = layout.extent(size_of::<i64>());
        let inside = inside.is_some_and(|range| range.end <= size_of_val(index.values()));
        assert!(inside || layout.numel() == 0, "the index layout stays inside of the index");
        let Range { start, end } = index.values().as_ptr_range();
        let span = Span { low: start.addr(), high: end.addr() };
        AxisIndex { origin: start.cast(), layout, span }
    }

    /// Returns the position on an axis of `size`, or `None` if the value is out of range. Another
    /// thread may change a foreign index, so the value is loaded once: the value that is checked is
    /// the value that is returned.
    ///
    /// # Safety
    /// The offset is that of an element of the layout, relative to its first element.
    #[inline(always)]
    unsafe fn at(&self, offset: isize, size: usize) -> Option<usize> {
        // SAFETY: the caller's promise.
        let at = from_front(unsafe { self.read(offset) }, size);
        is_inside(at, size).then_some(at as usize)
    }

    /// Returns the value without a check, loaded once.
    ///
    /// # Safety
    /// As for [`AxisIndex::at`].
    #[inline(always)]
    unsafe fn read(&self, offset: isize) -> i64 {
        // SAFETY: the caller's promise.
        unsafe { read_once(self.origin.offset(offset).cast::<i64>()) }
    }

    /// Prefetches `count` contiguous entries at `offset`, which may lie outside of the index.
    #[inline(always)]
    fn ask_for(&self, offset: isize, count: usize) {
        prefetch(self.origin.wrapping_offset(offset), count * size_of::<i64>());
    }
}

fn at<const N: usize>(run: &Run<N>, k: isize) -> [isize; N] {
    std::array::from_fn(|n| run.offsets[n] + k * run.strides[n])
}

/// Returns the part of `layout` that begins at index 0 and has the sizes of `shape` on all axes but
/// `axis`. On `axis` it is the whole layout.
fn corner(layout: &Layout, shape: &[usize], axis: usize) -> Layout {
    let sizes = resized(shape, axis, layout.shape()[axis]);
    assert!(sizes.iter().zip(layout.shape()).all(|(part, whole)| part <= whole), "a part of it");
    Layout::over(&sizes, layout.strides(), layout.offset())
}
