//! Pieces of work on ranges of places, which the plans share among threads.

use std::mem::MaybeUninit;
use std::ops::Range;

use inlay_core::{Layout, ResolvedSlice};

use super::super::RowScatter;
use super::super::direct::{Direct, Listed, Task, Writers};
use super::super::grouped::LINE;
use super::super::notes::Notes;
use crate::kernels::copy::copy_to;
use crate::kernels::positions::Shared;
use crate::threads;
use crate::walk::Run;

/// A piece of the work: some elements of the rows of one range of places.
pub(super) struct Piece {
    /// The number of the range.
    pub(super) range: usize,
    elements: Range<usize>,
    /// Its words of the buffer for notes.
    pub(super) notes: Range<usize>,
    /// The number of this part of the chunks of entries, and of all parts.
    pub(super) part: (usize, usize),
    /// The number of the partial result to which the entries are reduced, for all parts but the first.
    /// Those of a range are numbered in the order of the parts.
    pub(super) partial: Option<usize>,
}

/// How the work on a range that has more than a thread's share of the entries is split.
#[derive(Clone, Copy)]
pub(super) enum Cut {
    /// Into columns of its rows.
    Columns,
    /// Into parts of this many chunks of entries, if the range is short. The reduction is exact.
    Chunks(usize),
    /// It is not split.
    Nothing,
}

impl Direct<'_> {
    /// Splits the work on ranges, each with its numbers of entries and of places, into pieces, the
    /// longest first. `cut` tells how a range that has more than a thread's share of the entries is
    /// split. Also returns how many words all notes take.
    pub(super) fn pieces(
        &self,
        ranges: impl Iterator<Item = (usize, usize)>,
        entries: usize,
        cut: Cut,
    ) -> (Vec<Piece>, usize) {
        let notes = Notes::of(self.call.combine);
        let share = (entries / threads::num_threads()).max(1);
        let most = match cut {
            Cut::Columns if !self.with_gaps() => (self.row_bytes() / COLUMN).max(1),
            _ => 1,
        };
        let in_line = COLUMN / self.call.dst.dtype().size();
        let (mut pieces, mut words, mut partials) = (vec![], 0, 0..);
        for (range, (entries, places)) in ranges.enumerate() {
            let columns = entries.div_ceil(share).clamp(1, most);
            let columns = if columns < FEWEST { 1 } else { columns };
            let parts = match cut {
                Cut::Chunks(chunks) if self.is_short(places) => {
                    entries.div_ceil(share.div_ceil(IN_SHARE)).clamp(1, chunks)
                }
                _ => 1,
            };
            for slab in 0..self.slabs() {
                let Range { start, .. } = self.slab(slab);
                for (column, part) in (0..columns).flat_map(|at| (0..parts).map(move |k| (at, k))) {
                    let lines = threads::part_of(most, columns, column);
                    // Columns begin with whole lines of a row, and the last one has the rest.
                    let at = |line: usize| match line == most {
                        true => start + self.row_len(),
                        false => start + line * in_line,
                    };
                    let partial = if part > 0 { partials.next() } else { None };
                    // Partial results have notes of their own.
                    let own = if part > 0 { 0 } else { notes.words(places, entries) };
                    let notes = words..words + own;
                    // Threads that write notes share no cache line.
                    words = notes.end.next_multiple_of(LINE / size_of::<u32>());
                    let elements = at(lines.start)..at(lines.end);
                    let piece = Piece { range, elements, notes, part: (part, parts), partial };
                    pieces.push((entries / (columns * parts), piece));
                }
            }
        }
        pieces.sort_by_key(|(weight, piece)| (std::cmp::Reverse(*weight), piece.range, piece.part));
        (pieces.into_iter().map(|(_, piece)| piece).collect(), words)
    }

    /// Calls `work` with each piece, its run of elements and its words for notes.
    pub(super) fn each_piece(
        &self,
        pieces: &[Piece],
        space: &mut [u32],
        work: impl Fn(&Piece, Run<3>, &mut [u32]) + Sync,
    ) {
        assert!(pieces.iter().all(|piece| piece.notes.end <= space.len()), "room for all notes");
        let space = Shared(space.as_mut_ptr());
        threads::run(pieces.len(), |number| {
            let piece = &pieces[number];
            // SAFETY: the buffer is initialized and long enough, as was just checked, and pieces
            // have different words of it.
            let words = unsafe {
                let words = space.get().add(piece.notes.start);
                std::slice::from_raw_parts_mut(words, piece.notes.len())
            };
            self.rows.runs(piece.elements.clone(), |run| work(piece, run, words));
        });
    }

    /// Copies the old values of the ranges that several pieces write, if there is a base. Returns for
    /// each range whether its old values are copied by its only piece, just before it is written, so
    /// that they are still in a cache.
    pub(super) fn copy_shared_base(&self, pieces: &[Piece], ranges: &[Range<usize>]) -> Vec<bool> {
        let mut alone = vec![self.slabs() == 1; ranges.len()];
        if self.slabs() > 1 {
            self.copy_base(&(0..self.places()));
            return alone;
        }
        // Pieces of a range have the same weight, so they are next to each other.
        for two in pieces.windows(2).filter(|two| two[0].range == two[1].range) {
            alone[two[0].range] = false;
        }
        let shared = alone.iter().zip(ranges).filter(|(alone, _)| !**alone);
        shared.for_each(|(_, own)| self.copy_base(own));
        alone
    }

    /// Copies the old values of a range of places, if there is a base. They are still in a cache
    /// when they are used.
    pub(super) fn copy_base(&self, own: &Range<usize>) {
        let RowScatter { dst, base: Some(base), axis, .. } = self.call else { return };
        let part = ResolvedSlice { start: own.start, step: 1, len: own.len() };
        let (to, from) = (dst.layout().slice(axis, part), base.layout().slice(axis, part));
        let by = |layout: &Layout| own.start as isize * layout.strides()[axis];
        // SAFETY: the range lies inside of the axis of both views, which have one shape.
        let (to, from) =
            unsafe { (dst.part(by(dst.layout()), &to), base.part(by(base.layout()), &from)) };
        copy_to(to, from);
    }

    /// Calls the function that is called after the last task of a range.
    pub(super) fn end(
        &self,
        (run, stage): (Run<3>, Option<*mut u8>),
        own: &Range<usize>,
        writers: Writers,
        space: &mut [u32],
    ) {
        if let Some(end) = writers.end {
            let task = Task { run, own, first: 0, listed: Listed::InOrder(&[]), stage };
            // SAFETY: as for the tasks of the range, which the caller has written; there are no
            // entries.
            unsafe { end(self, &task, space) };
        }
    }

    /// Calls `work` with the address of a copy of the places of a range, and copies them back, if the
    /// range is so short that it shares cache lines with others, which other threads write.
    /// Otherwise it calls `work` with `None`.
    pub(super) fn staged(
        &self,
        run: &Run<3>,
        own: &Range<usize>,
        work: impl FnOnce(Option<*mut u8>),
    ) {
        let bytes = own.len() * self.row_bytes();
        let whole = self.may_stage() && run.len == self.row_len();
        if !whole || bytes > STAGED {
            return work(None);
        }
        let mut stage = [const { MaybeUninit::<u8>::uninit() }; STAGED];
        let stage = stage.as_mut_ptr().cast::<u8>();
        // SAFETY: the places of a range are contiguous and lie inside of the destination. The stage
        // has room for them, and is written before it is read. No other thread has these places.
        unsafe {
            let by = run.offsets[0] + own.start as isize * self.steps[0];
            let to = self.call.dst.origin().offset(by);
            std::ptr::copy_nonoverlapping(to, stage, bytes);
            work(Some(stage));
            std::ptr::copy_nonoverlapping(stage, to, bytes);
        }
    }

    /// Returns whether a range of `places` is so short that a thread can have partial results of it.
    fn is_short(&self, places: usize) -> bool {
        places == 1 || places * self.row_bytes() <= STAGED
    }

    /// Returns whether the destination is contiguous, one row after the other.
    pub(super) fn may_stage(&self) -> bool {
        let bytes = self.row_bytes() as isize;
        self.slabs() == 1 && !self.with_gaps() && self.steps[0] == bytes
    }

    /// Returns a number of places at whose multiples ranges for `parts` should begin. Long ranges
    /// begin with a cache line. Short ones are copied before they are written.
    pub(super) fn align(&self, parts: usize) -> usize {
        let short = self.places().saturating_mul(self.row_bytes()) / parts.max(1) < STAGED / 2;
        if short && self.may_stage() { 1 } else { LINE.div_ceil(self.row_bytes()) }
    }
}

/// The fewest bytes of a column: a cache line.
const COLUMN: usize = LINE;

/// The fewest columns of a row. Columns are read more slowly than whole rows in the order of memory, so
/// fewer threads would gain nothing. (Rows of `f32` that all go to one place, in ms: 1M rows of 64 take 8.6
/// by one thread, and 5.2 of each of 4 threads; 100k rows of 512 take 6.3, 2.6 of 4 threads and 0.7 of 32.)
const FEWEST: usize = 4;

/// The number of parts of a short range for each thread's share of its entries. With several, threads
/// that take several pieces end at about the same time. (The longest of 64 threads with maxima of 1M
/// rows of 64 `f32` into 10k by a skewed index: 1.5 times an equal share; 4.4 if nothing is split.)
const IN_SHARE: usize = 2;

/// Ranges of up to this many bytes are copied before they are written.
const STAGED: usize = 2 << 10;
