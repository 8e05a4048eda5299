//! Whole rows at the positions of a 1-D index: read them, or write and reduce into them.
//!
//! A row is what remains of a tensor when one axis is fixed; it need not be contiguous.

mod direct;
mod grouped;
mod near;
mod products;
mod small;
mod values;
mod write;

use inlay_core::{Combine, Layout, Reduce, Result};

use super::copy::move_run;
use super::elements::gather_lanes;
use super::groups::is_dense;
use super::listing::{Entries, MOST_PLACES};
use super::positions::{Positions, is_inside};
use super::reducer::{dispatch_reduce, prefetch_far, rows_ahead};
use crate::number::dispatch_width;
use crate::threads;
use crate::tuning::{CACHED, NOTED, SHORT_ROW};
use crate::walk::Walk;
use crate::{Dst, Src};
use direct::Direct;
use grouped::{LINE, each_row, evenly};
pub use products::{products_of_all, products_of_others};

/// Rows up to this many bytes are reduced directly, longer ones by place. A short row is less than
/// what it costs to look it up in groups; a long one is better read out of order than its place
/// written again and again. (1M rows of 64 bytes: 0.9 of the time, of 128 bytes: 1.1.)
const DIRECT_ROW: usize = 64;

/// The same for one thread, which reads all updates in the order of memory, and for rows with gaps, of
/// which every line is read for little. (256 MB in rows of 256 bytes: 20 ms instead of 30, of 512 bytes:
/// 18 instead of 22, of 1 KiB: 18 instead of 17.)
const DIRECT_ROW_ALONE: usize = 512;

/// The same for values that are not reduced: by place, only the last of each place is read. (500k rows of
/// 32 bytes into 50k: 1.5 ms instead of 1.9, 1M of 256 bytes into 100k: 6 instead of 25; 4M of 4 bytes into
/// 400k: 7.9 instead of 5.7.)
const DIRECT_ASSIGNED: usize = 16;

/// The same for one thread. (500k rows of 32 bytes into 50k: 1.06 ms instead of 1.26.)
const DIRECT_ASSIGNED_ALONE: usize = 32;

/// The same where few places are named: to bring their entries together takes longer than to write.
/// (100k rows of 256 bytes into 1M: 4.3 ms instead of 16, sums on two threads 2.8 instead of 15. Threads
/// can share longer rows, which is by place.)
const DIRECT_SPARSE: usize = 16 << 10;

/// An index argument as the user gave it, and how errors call it.
#[derive(Clone, Copy)]
pub struct Index<'a> {
    /// The operation.
    pub op: &'static str,
    /// The argument.
    pub arg: &'static str,
    /// The values: 0-D or 1-D for rows, of the tensor's rank for elements.
    pub values: Src<'a>,
}

impl Index<'_> {
    /// A checked copy of the values, which count on `axis` of `size`.
    pub(super) fn positions(&self, axis: usize, size: usize) -> Result<Positions> {
        Positions::read(self.op, self.arg, self.values, axis, size)
    }
}

/// `dst[i] = src[index[i]]` along `axis`.
pub fn gather_rows(dst: Dst<'_>, src: Src<'_>, axis: usize, index: &Positions) {
    dst.expect_apart(&src);
    let size = dst.same_size(&src);
    let positions = index.values();
    let (to_axis, from_axis) = (dst.layout().strides()[axis], src.layout().strides()[axis]);
    let rows = Walk::of_rows([dst.layout(), src.layout()], axis);
    let [to_step, from_step] = rows.run_strides().map(isize::unsigned_abs);
    // Elements that lie further apart than rows are read as elements, and so are rows of one.
    if to_step > to_axis.unsigned_abs() || rows.len() == 1 {
        return gather_lanes(dst, src, axis, index);
    }
    // A run that jumps from line to line of the source is read a line of the destination at a time:
    // what is met on the way stays in a cache for the next rows. (Every other element of 2048 floats a
    // row: 1.1 ms at once, 6.6 in lines.)
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
        // SAFETY: the run lies inside of both rows, `i` and the position inside of both axes, and
        // the views lie apart.
        unsafe {
            let (to, from) = (dst.origin().offset(to), src.origin().offset(from));
            move_run::<W>(to, run.strides[0], from, run.strides[1], run.len);
        }
    }));
}

/// How many rows ahead those of the `n`-th of the tensors are asked for, if that helps: an index names
/// them in no order that the CPU could see.
fn ahead<const N: usize>(rows: &Walk<N>, n: usize, size: usize) -> Option<usize> {
    let bytes = rows.run_len() * size;
    (rows.run_strides()[n] == size as isize && bytes <= SHORT_ROW.get()).then(|| rows_ahead(bytes))
}

/// `dst[index[i]] (combine)= updates[i]` along `axis`, for i in order. Where `base` is given, `dst`
/// is fresh and takes its other rows, and its old values, from there.
///
/// # Errors
/// An index out of range of the axis. Then nothing was written, unless `dst` is fresh.
pub fn scatter_rows(
    dst: Dst<'_>,
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
    let call = Call { dst, base, axis, updates, selected: None, combine };
    call.expect_sound();
    if small::scatter(&call, &index) {
        return Ok(());
    }
    scatter(&call, index)
}

/// Whether [`scatter_selected_rows`] is for an index of so many `entries` on an axis of `places`, where
/// they select among `rows`.
pub fn may_select(places: usize, entries: usize, rows: usize) -> bool {
    is_dense(entries, places) && rows <= MOST_PLACES
}

/// `dst[index[i]] (combine)= updates[selected[i]]` along `axis`, for i in order: [`scatter_rows`] of what
/// [`gather_rows`] reads, without the memory in between.
///
/// # Errors
/// As for [`scatter_rows`].
pub fn scatter_selected_rows(
    dst: Dst<'_>,
    base: Option<Src<'_>>,
    axis: usize,
    index: Index<'_>,
    (updates, selected): (Src<'_>, &Positions),
    combine: Combine,
) -> Result<()> {
    let (entries, selected) = (index.values.layout().numel(), selected.values());
    let (places, rows) = (dst.layout().shape()[axis], updates.layout().shape()[axis]);
    assert!(may_select(places, entries, rows), "many entries");
    assert_eq!(selected.len(), entries, "a row for each entry");
    assert!(selected.iter().all(|&at| is_inside(at, rows)), "rows that are there");
    let call = Call { dst, base, axis, updates, selected: Some(selected), combine };
    call.expect_sound();
    scatter(&call, index)
}

fn scatter(call: &Call<'_>, index: Index<'_>) -> Result<()> {
    let Call { dst, base, axis, .. } = *call;
    let places = dst.layout().shape()[axis];
    let direct = Direct::new(call);
    let direct = call.suits(&direct, &Entries::Raw(index.values)).then_some(&direct);
    // A fresh result is thrown away when the index turns out to be wrong, so that it can be checked
    // on the way. A failed call is done again from a checked copy, which tells what is wrong.
    if let (Some(direct), Some(_)) = (direct, base)
        && direct.reads_index_once()
        && direct.run(&Entries::Raw(index.values))?
    {
        return Ok(());
    }
    let positions = Positions::read(index.op, index.arg, index.values, axis, places)?;
    match direct {
        Some(direct) => {
            let done = direct.run(&Entries::Checked(&positions))?;
            assert!(done, "positions were checked");
            Ok(())
        }
        None => grouped::scatter(call, &positions),
    }
}

/// Whether some places have most of the entries: caches hold them. (1M rows of 256 bytes whose places follow
/// Zipf's law: 12 ms directly, 14 by place.)
fn is_uneven(index: &Entries<'_>, places: usize) -> bool {
    let sampled = index.sample(SAMPLES, places);
    sampled.chunk_by(|a, b| a == b).count() <= sampled.len() / 2
}

/// Entries that are looked at to tell how they spread.
const SAMPLES: usize = 256;

/// What a scatter of rows is given, but for the index.
#[derive(Clone, Copy)]
struct Call<'a> {
    dst: Dst<'a>,
    base: Option<Src<'a>>,
    axis: usize,
    updates: Src<'a>,
    /// The row of updates that each entry stands for, where it is not the one of its own number.
    selected: Option<&'a [i64]>,
    combine: Combine,
}

impl<'a> Call<'a> {
    /// What every way relies on.
    fn expect_sound(&self) {
        self.dst.expect_apart(&self.updates);
        let shape = self.dst.layout().shape();
        assert!(self.base.is_none_or(|base| base.layout().shape() == shape), "one shape");
    }

    /// Destination, old values and updates.
    fn layouts(&self) -> [&'a Layout; 3] {
        let old = self.base.unwrap_or(self.dst.as_src());
        [self.dst.layout(), old.layout(), self.updates.layout()]
    }

    /// The rows of the three.
    fn rows(&self) -> Walk<3> {
        Walk::of_rows(self.layouts(), self.axis)
    }

    /// The steps from row to row.
    fn steps(&self) -> [isize; 3] {
        self.layouts().map(|layout| layout.strides()[self.axis])
    }

    /// Whether to write directly is a good way for these entries. There is something to write to.
    fn suits(&self, direct: &Direct<'_>, index: &Entries<'_>) -> bool {
        let row = direct.row_len() * self.dst.same_size(&self.updates);
        let (places, entries) = (self.dst.layout().shape()[self.axis], index.len());
        let in_order = self.selected.is_none() && threads::num_threads() == 1;
        let longest = match self.combine {
            _ if !is_dense(entries, places) => DIRECT_SPARSE,
            Combine::Assign if in_order => DIRECT_ASSIGNED_ALONE,
            Combine::Assign => DIRECT_ASSIGNED,
            Combine::Reduce { .. } if direct.with_gaps() || in_order => DIRECT_ROW_ALONE,
            Combine::Reduce { .. } if row <= DIRECT_ROW || self.selected.is_some() => DIRECT_ROW,
            Combine::Reduce { .. } => {
                let cached = entries.saturating_mul(row) <= CACHED.get();
                if cached || is_uneven(index, places) { DIRECT_ROW_ALONE } else { DIRECT_ROW }
            }
        };
        let able = match self.combine {
            Combine::Assign => true,
            Combine::Reduce { reduce, include_self } => {
                let notes = !include_self || reduce == Reduce::Mean;
                let in_place = dispatch_reduce!(reduce, self.dst.dtype(), (T, R) => {
                    <R as super::reducer::Reducer<T>>::IN_PLACE
                });
                in_place && (!notes || places / NOTED.get() <= entries)
            }
        };
        able && row <= longest && self.dst.layout().numel() > 0
    }
}
