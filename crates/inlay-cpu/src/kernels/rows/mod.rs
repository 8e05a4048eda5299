//! Gather and scatter of rows by a 1-D index: reads rows, writes them, or reduces into them.
//!
//! A *row* is all elements at one position of an axis. It need not be contiguous. A *place* is a
//! row of the destination. An *entry* is an element of the index, and a row of the updates belongs
//! to each entry.

mod direct;
mod finish;
mod grouped;
mod near;
mod notes;
mod plans;
mod products;
mod small;
mod values;
mod write;

use inlay_core::{Combine, Layout, Reduce, Result};

use super::boxes::{Packed, is_transposed, or_packed};
use super::copy::{copy_to, move_run};
use super::elements::gather_lanes;
use super::groups::{has_few_places, is_dense};
use super::listing::{IndexReader, MOST_PLACES};
use super::positions::Positions;
use super::reducer::{is_in_place, prefetch_far, rows_ahead};
use crate::number::dispatch_width;
use crate::threads;
use crate::tuning::{NOTED, SCANNED, SHORT_ROW, WAVE};
use crate::view::Target;
use crate::walk::Walk;
use crate::{Dst, Src};
use direct::Direct;
use grouped::{LINE, each_row, evenly};
pub use products::{products_of_all, products_of_others};

/// Rows of up to this many bytes are reduced directly (`direct.rs`), longer ones by place
/// (`grouped.rs`). For a short row, looking up its group takes longer than the row itself. For a
/// long row it is faster to read updates out of order than to write the place repeatedly. (256 MB of
/// updates, directly and by place: rows of 256 bytes take 20 and 30 ms, of 512 bytes 18 and 22 ms,
/// of 1 KiB 18 and 17 ms.)
const DIRECT_ROW: usize = 512;

/// The same limit for assignments with more entries than places. By place, only the last update of
/// each place is read. (500k rows of 32 bytes into 50k on one thread: 1.06 ms directly, 1.26 ms by
/// place. 1M rows of 256 bytes into 100k on two: 25 ms directly, 6 ms by place.)
const DIRECT_ASSIGNED: usize = 32;

/// The limit for assignments to a fresh destination holds from one entry for so many places on. By place,
/// each place is written once. Directly, the old values of all places are copied first. (1.5M rows of 256
/// bytes, each named once, on two threads: 16 ms by place, 39 ms directly.)
const FRESH: usize = 4;

/// The same limit for reductions of selected rows, and on a few threads, which don't partition the
/// entries (see [`SCANNED`]). Directly, places are read and written in the order of the index, which
/// on a few threads is faster only if the last-level cache holds them. (Forward and backward pass of
/// means of 200k selected rows of 256 bytes on one thread: 5.0 ms by place, 7.4 ms directly. Sums of
/// 1M rows of 256 bytes into 100k on two threads: 10.4 and 13.6 ms; maxima of 200k into 20k: 2.3 and
/// 1.9 ms.)
const DIRECT_SHARED: usize = 64;

/// The same limit for sparse indices, whose entries take longer to group than to write. Longer rows
/// are processed by place, where threads can share a row. (100k rows of 256 bytes into 1M, directly
/// and by place: assignments take 4.3 and 16 ms, sums on two threads 2.8 and 15 ms.)
const DIRECT_SPARSE: usize = 16 << 10;

/// A strided source is copied for a gather unless there are more than this many rows per entry.
pub(super) const SPARSE: usize = 4;

/// Returns whether the entries of an index are in no order and name no place much more often than others, as
/// far as a sample tells. Caches hold a few places that have most of the entries. (1M rows of 256 bytes whose
/// places follow Zipf's law, on two threads: 9.8 ms directly, 11.6 ms by place.)
fn is_spread(index: &IndexReader<'_>, places: usize) -> bool {
    let mut sampled = index.sample(SAMPLES, places);
    if sampled.is_sorted() {
        return false;
    }
    sampled.sort_unstable();
    sampled.chunk_by(|a, b| a == b).count() > sampled.len() / 2
}

/// The number of entries that [`is_spread`] samples.
const SAMPLES: usize = 256;

/// An index argument as the user gave it, and its name in error messages.
#[derive(Clone, Copy)]
pub struct Index<'a> {
    /// The name of the operation.
    pub op: &'static str,
    /// The name of the argument.
    pub arg: &'static str,
    /// The index itself. It is 0-D or 1-D for rows, and has the rank of the tensor for elements.
    pub values: Src<'a>,
}

impl Index<'_> {
    /// Returns a checked private copy of the index, whose values are positions on `axis` of `size`.
    pub(super) fn positions(&self, axis: usize, size: usize) -> Result<Positions> {
        Positions::read(self.op, self.arg, self.values, axis, size)
    }

    /// Panics unless the index is 0-D or 1-D and has integers.
    #[inline]
    fn expect_vector(&self) {
        let vector = self.values.layout().rank() <= 1 && self.values.dtype().is_integer();
        assert!(vector, "an index of integers");
    }
}

/// `dst[i] = src[index[i]]` along `axis`. `dst` is fresh: its values are unspecified after an error.
///
/// # Errors
/// An index value is out of range, or there is no memory for scratch buffers.
///
/// # Panics
/// When `dst` overlaps one of the others, when the element sizes or the shapes without the axis
/// differ, when `dst` does not have one row for each entry, or when the index is not a 0-D or 1-D
/// view of integers.
pub fn gather_rows(dst: Dst<'_>, src: Src<'_>, axis: usize, index: Index<'_>) -> Result<()> {
    let dst = dst.into_target();
    dst.expect_source(&src);
    dst.expect_apart(&index.values);
    index.expect_vector();
    let (to, from) = (dst.layout().shape(), src.layout().shape());
    let alike = (0..from.len()).all(|k| k == axis || to.get(k) == Some(&from[k]));
    assert!(to.len() == from.len() && alike, "rows of one shape");
    assert_eq!(to[axis], index.values.layout().numel(), "a row for each entry");
    if !small::gather(dst, src, axis, &index) {
        gather_checked(dst, src, axis, &index.positions(axis, from[axis])?);
    }
    Ok(())
}

/// [`gather_rows`] by positions on the axis of `src`, after the views were checked.
fn gather_checked(dst: Target<'_>, src: Src<'_>, axis: usize, index: &Positions) {
    let size = dst.same_size(&src);
    let positions = index.values();
    let places = src.layout().shape()[axis];
    // A transposed source is copied if most of its cache lines are read anyway, and one with smaller
    // gaps if its rows are read several times. (2048 rows of every other column of 2048 x 4096 `f32`:
    // 1.3 ms, with a copy 1.6 ms.)
    let packed = [match positions.len() / places.max(1) {
        2.. => Packed::of(src),
        _ if positions.len() >= places / SPARSE => Packed::of_transposed(src),
        _ => None,
    }];
    let [src] = or_packed([src], &packed);
    let (to_axis, from_axis) = (dst.layout().strides()[axis], src.layout().strides()[axis]);
    let rows = Walk::of_rows([dst.layout(), src.layout()], axis);
    let [to_step, from_step] = rows.run_strides().map(isize::unsigned_abs);
    // If the elements of a row are further apart in memory than the rows, or a row has one element,
    // elements are gathered lane by lane.
    if to_step > to_axis.unsigned_abs() || rows.len() == 1 {
        return gather_lanes(dst, src, axis, index);
    }
    // A run that reads each element from another cache line is split into columns, each of which
    // fills one cache line of the destination. The source lines of a column stay in the cache for
    // the next rows. Other runs are not split. (Every other element of rows of 2048 `f32`: 1.1 ms,
    // 6.6 ms if split.)
    let columns = if from_step >= LINE { rows.run_len().div_ceil((LINE / size).max(1)) } else { 1 };
    let ahead = ahead(&rows, 1, size).unwrap_or(positions.len());
    let even = evenly(positions.len());
    dispatch_width!(size, W => each_row(&rows, &even, size, 2 * size, columns, |run, i| {
        let to = run.offsets[0] + i as isize * to_axis;
        let from = |position: i64| run.offsets[1] + position as isize * from_axis;
        if let Some(&position) = positions.get(i + ahead) {
            prefetch_far(src.origin().wrapping_offset(from(position)), run.len * size);
        }
        let from = from(positions[i]);
        // SAFETY: the walk has compared the shapes without the axis, so the run lies inside of both
        // rows. `i` and the position lie inside of their axes, and the views don't overlap, as was
        // checked above. Threads have different rows of `dst`, or different elements of a row.
        unsafe {
            let (to, from) = (dst.origin().offset(to), src.origin().offset(from));
            move_run::<W>(to, run.strides[0], from, run.strides[1], run.len);
        }
    }));
}

/// Returns how many rows ahead the rows of the `n`-th tensor are prefetched, or `None` if they are
/// strided or long. An index names rows in an order that the hardware prefetcher can't predict.
fn ahead<const N: usize>(rows: &Walk<N>, n: usize, size: usize) -> Option<usize> {
    let bytes = rows.run_len() * size;
    (rows.run_strides()[n] == size as isize && bytes <= SHORT_ROW.get()).then(|| rows_ahead(bytes))
}

/// `dst[index[i]] (combine)= updates[i]` along `axis`, for i in order. If `base` is given, `dst` is
/// fresh, and its old values are those of `base`.
///
/// # Errors
/// An index value is out of range, or there is no memory for scratch buffers. Then nothing was
/// written, unless `dst` is fresh.
///
/// # Panics
/// When the index is not a 0-D or 1-D view of integers, when there is not one row of updates for
/// each entry, when the views don't fit together in shape or dtype, or when `dst` overlaps one of
/// the others.
pub fn scatter_rows(
    dst: Dst<'_>,
    base: Option<Src<'_>>,
    axis: usize,
    index: Index<'_>,
    updates: Src<'_>,
    combine: Combine,
) -> Result<()> {
    scatter_rows_to(dst.into_target(), base, axis, index, updates, combine)
}

/// [`scatter_rows`] for kernels. The caller guarantees that no other thread writes the target.
pub(super) fn scatter_rows_to(
    dst: Target<'_>,
    base: Option<Src<'_>>,
    axis: usize,
    index: Index<'_>,
    updates: Src<'_>,
    combine: Combine,
) -> Result<()> {
    let entries = index.values.layout().numel();
    assert!(
        updates.layout().shape().get(axis) == Some(&entries),
        "a row of updates for each entry"
    );
    let call = RowScatter { dst, base, axis, updates, selected: None, combine };
    call.expect_sound(&index);
    if small::scatter(&call, &index) {
        return Ok(());
    }
    let packed = [Packed::of_transposed(updates)];
    let [updates] = or_packed([updates], &packed);
    let base = base_or_copy(dst, base);
    scatter(&RowScatter { base, updates, ..call }, index)
}

/// Copies a transposed base to the fresh destination, in an order that suits its strides. Then the
/// destination has the old values, and there is no base. Otherwise returns the base.
pub(super) fn base_or_copy<'a>(dst: Target<'_>, base: Option<Src<'a>>) -> Option<Src<'a>> {
    base.filter(|base| {
        let copied = is_transposed(base.layout());
        if copied {
            copy_to(dst, *base);
        }
        !copied
    })
}

/// Returns whether [`scatter_selected_rows`] supports an index of `entries` on an axis of `places`,
/// with updates of `rows` rows.
pub fn may_select(places: usize, entries: usize, rows: usize) -> bool {
    is_dense(entries, places) && rows <= MOST_PLACES
}

/// `dst[index[i]] (combine)= updates[selected[i]]` along `axis`, for i in order. It is
/// [`scatter_rows`] of the result of [`gather_rows`], without memory for that result.
///
/// # Errors
/// As for [`scatter_rows`].
///
/// # Panics
/// As for [`scatter_rows`], when [`may_select`] is false, and when `selected` was checked for an
/// axis larger than that of the updates.
pub fn scatter_selected_rows(
    dst: Dst<'_>,
    base: Option<Src<'_>>,
    axis: usize,
    index: Index<'_>,
    (updates, selected): (Src<'_>, &Positions),
    combine: Combine,
) -> Result<()> {
    let dst = dst.into_target();
    let entries = index.values.layout().numel();
    let (places, rows) = (dst.layout().shape()[axis], updates.layout().shape()[axis]);
    assert!(may_select(places, entries, rows), "a dense index and rows numbered in 32 bits");
    assert_eq!(selected.values().len(), entries, "a row for each entry");
    selected.expect_within(rows);
    let selected = Some(selected.values());
    let call = RowScatter { dst, base, axis, updates, selected, combine };
    call.expect_sound(&index);
    let packed = [(entries >= rows / SPARSE).then(|| Packed::of_transposed(updates)).flatten()];
    let [updates] = or_packed([updates], &packed);
    let base = base_or_copy(dst, base);
    scatter(&RowScatter { base, updates, ..call }, index)
}

fn scatter(call: &RowScatter<'_>, index: Index<'_>) -> Result<()> {
    let RowScatter { dst, base, axis, .. } = *call;
    let places = dst.layout().shape()[axis];
    let direct = Direct::new(call);
    let direct = call.suits(&direct, &IndexReader::Raw(index.values)).then_some(&direct);
    let direct = direct.map(|direct| (direct, direct.plan(&IndexReader::Raw(index.values))));
    // A fresh result is discarded if an entry turns out to be out of range, so the index can be
    // checked while it is used. The checked copy below then finds the entry for the error message.
    if let Some((direct, plan)) = &direct
        && (base.is_some() && direct.reads_index_once(plan) || plan.checks_first())
        && direct.run(plan, &IndexReader::Raw(index.values))?
    {
        return Ok(());
    }
    let Some((direct, plan)) = direct else { return grouped::scatter(call, index) };
    let positions = index.positions(axis, places)?;
    let done = direct.run(&plan, &IndexReader::Checked(&positions))?;
    assert!(done, "positions were checked");
    Ok(())
}

/// The arguments of a scatter of rows without the index, checked by [`RowScatter::expect_sound`].
#[derive(Clone, Copy)]
struct RowScatter<'a> {
    dst: Target<'a>,
    base: Option<Src<'a>>,
    axis: usize,
    updates: Src<'a>,
    /// The number of the row of updates of each entry. `None` if it is the number of the entry.
    selected: Option<&'a [i64]>,
    combine: Combine,
}

impl<'a> RowScatter<'a> {
    /// Panics unless everything holds that the `unsafe` blocks of every strategy rely on. Base,
    /// updates and index don't overlap the destination. Base and updates have its element size, and
    /// its dtype if they are reduced. The base has its shape, and so have the updates without the
    /// axis. The index is 0-D or 1-D and has integers. The callers check the number of rows of the
    /// updates.
    #[inline]
    fn expect_sound(&self, index: &Index<'_>) {
        let RowScatter { dst, base, axis, updates, combine, .. } = self;
        let shape = dst.layout().shape();
        dst.expect_source(updates);
        dst.expect_apart(&index.values);
        if let Some(base) = base {
            dst.expect_source(base);
            assert!(base.layout().shape() == shape, "a base of one shape");
        }
        let one_dtype = *combine == Combine::Assign || updates.dtype() == dst.dtype();
        assert!(one_dtype, "numbers of one dtype are reduced");
        let rows = updates.layout().shape();
        let alike = (0..shape.len()).all(|k| k == *axis || rows.get(k) == Some(&shape[k]));
        assert!(rows.len() == shape.len() && alike, "rows of one shape");
        index.expect_vector();
    }

    /// Returns the layouts of destination, old values and updates.
    fn layouts(&self) -> [&'a Layout; 3] {
        let old = self.base.unwrap_or(self.dst.as_src());
        [self.dst.layout(), old.layout(), self.updates.layout()]
    }

    /// Returns a walk over the elements of a row of all three.
    fn rows(&self) -> Walk<3> {
        Walk::of_rows(self.layouts(), self.axis)
    }

    /// Returns the distance in bytes from one row to the next for all three.
    fn steps(&self) -> [isize; 3] {
        self.layouts().map(|layout| layout.strides()[self.axis])
    }

    /// Returns whether the direct strategy is possible and the faster one for these entries. It is
    /// never chosen for an empty destination.
    fn suits(&self, direct: &Direct<'_>, index: &IndexReader<'_>) -> bool {
        let row = direct.row_len() * self.dst.same_size(&self.updates);
        let (places, entries) = (self.dst.layout().shape()[self.axis], index.len());
        let several = threads::parts(entries, size_of::<i64>()) > 1;
        let few = several && threads::num_threads() <= SCANNED.get();
        let cached = places.saturating_mul(row) <= WAVE.get();
        let longest = match self.combine {
            _ if !is_dense(entries, places) => DIRECT_SPARSE,
            // Several threads find the last update of each of a few places faster than one thread
            // writes all updates.
            Combine::Assign
                if several && has_few_places(entries, places) && !index.is_sorted(places) =>
            {
                0
            }
            Combine::Assign if entries > places => DIRECT_ASSIGNED,
            Combine::Assign if self.base.is_some() && entries > places / FRESH => DIRECT_ASSIGNED,
            Combine::Reduce { .. } if self.selected.is_some() => DIRECT_SHARED,
            // The entries of a sorted index are grouped already.
            Combine::Reduce { .. } if row > DIRECT_ROW && index.is_sorted(places) => usize::MAX,
            Combine::Reduce { .. }
                if few && row > DIRECT_SHARED && !cached && is_spread(index, places) =>
            {
                DIRECT_SHARED
            }
            _ => DIRECT_ROW,
        };
        let able = match self.combine {
            Combine::Assign => true,
            Combine::Reduce { reduce, include_self } => {
                let notes = !include_self || reduce == Reduce::Mean;
                let in_place = is_in_place(reduce, self.dst.dtype());
                // Counts are `u32`.
                let noted = places / NOTED.get() <= entries && entries < u32::MAX as usize;
                in_place && (noted || !notes)
            }
        };
        able && row <= longest && places <= MOST_PLACES && self.dst.layout().numel() > 0
    }
}
