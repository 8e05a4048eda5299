//! Copies the elements of a strided fold to contiguous memory, some blocks at a time.

use std::ops::Range;

use inlay_core::{Layout, ResolvedSlice};

use super::BLOCK;
use crate::arch::LINE;
use crate::kernels::boxes::{over, packed};
use crate::kernels::copy::{copy_to, move_run};
use crate::memory::Scratch;
use crate::number::dispatch_width;
use crate::tuning::{TILE, WAVE};
use crate::walk::Walk;
use crate::{Src, threads};

/// The fewest elements of a result for which they are copied. The copy of fewer takes longer than
/// their fold.
pub(super) const PACKED: usize = 64;

/// The number of cache lines of the first axis of a transposed layout that are copied together.
/// (The sum of transposed 10000 x 10000 `f32` on one thread takes 43 ms, and 48 ms with 4 lines. That
/// of 1000 x 1000 takes 0.39 and 0.5 ms.)
const LINES: usize = 8;

/// How the elements of each result are copied.
pub(super) struct Packing<'a> {
    /// The folded axes.
    layout: &'a Layout,
    inner: &'a Walk<1>,
    size: usize,
    /// The number of elements that are copied at a time: whole blocks.
    most: usize,
    /// The number of elements of a row, if whole rows are copied, so that the copy of a transposed
    /// layout is made in tiles.
    row: Option<usize>,
}

impl<'a> Packing<'a> {
    pub(super) fn new(layout: &'a Layout, inner: &'a Walk<1>, size: usize) -> Self {
        let row = layout.shape().first().map_or(0, |&rows| inner.len() / rows.max(1));
        // The rows of a transposed layout are copied together, as many as are in `LINES` lines.
        let rows = (LINES * LINE / size).max(1) * row;
        let whole = layout.rank() > 1 && rows.saturating_mul(size) <= WAVE.get();
        let few = (TILE.get() / size).max(1);
        let most = if whole { rows.max(few) } else { few }.next_multiple_of(BLOCK);
        let row = whole.then_some(row);
        Packing { layout, inner, size, most, row }
    }

    /// Calls `work` with each result, the elements that are copied together, and a buffer for them.
    pub(super) fn parallel(
        &self,
        results: usize,
        work: impl Fn(usize, Range<usize>, Option<&Scratch<u8>>) + Sync,
    ) {
        let groups = self.inner.len().div_ceil(self.most);
        // The first and the last row may be incomplete.
        let room = self.inner.len().min(self.most) + 2 * self.row.unwrap_or(0);
        threads::split(results * groups, room.saturating_mul(2 * self.size), |range| {
            let space = Scratch::new(room * self.size).ok();
            for item in range {
                let start = item % groups * self.most;
                let elements = start..(start + self.most).min(self.inner.len());
                work(item / groups, elements, space.as_ref());
            }
        });
    }

    /// Copies elements of a result, and returns the address of the first one. Returns `None` without
    /// a buffer.
    ///
    /// # Safety
    /// `src` has the layout and the element size of this packing. The buffer is that of
    /// [`Packing::parallel`], and nobody else uses it.
    pub(super) unsafe fn copy(
        &self,
        src: Src<'_>,
        elements: Range<usize>,
        space: Option<&Scratch<u8>>,
    ) -> Option<*const u8> {
        let space = space?;
        let to = space.as_ptr().cast_mut();
        if let Some(row) = self.row {
            let rows = elements.start / row..elements.end.div_ceil(row);
            let part = self.layout.slice(0, ResolvedSlice::run(rows.start, rows.len()));
            let copy = packed(part.shape(), self.size);
            let by = rows.start as isize * self.layout.strides()[0];
            // SAFETY: the rows lie inside of the layout, and the buffer has room for them.
            unsafe { copy_to(over(space, &copy, src.dtype()), src.part(by, &part)) };
            return Some(to.wrapping_add((elements.start - rows.start * row) * self.size));
        }
        let (first, size) = (elements.start, self.size);
        dispatch_width!(size, W => self.inner.runs(elements.clone(), |run| {
            let to = to.wrapping_add((run.position - first) * size);
            // SAFETY: the walk stays inside of the layout, and the buffer has room for the elements.
            unsafe {
                let from = src.origin().offset(run.offsets[0]);
                move_run::<W>(to, size as isize, from, run.strides[0], run.len);
            }
        }));
        Some(to)
    }
}
