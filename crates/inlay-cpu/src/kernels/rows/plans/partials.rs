//! Partial results of exact reductions, which threads make of different entries of the same places.

use std::ops::Range;

use inlay_core::Result;

use super::super::direct::{Direct, Merge, Writers};
use super::super::grouped::LINE;
use super::super::notes::Notes;
use super::pieces::Piece;
use crate::kernels::positions::Shared;
use crate::memory::Scratch;

/// Partial results: for each a few places, whose rows are like those of the destination, and a bit
/// for each place, which is set if there is a result for it.
pub(super) struct Partials {
    words: Scratch<u32>,
    first: Shared<u32>,
    /// The number of partial results, and of the words of each.
    count: usize,
    each: usize,
    /// The number of words of the rows of one, which come first, and of the bits.
    rows: usize,
    bits: usize,
    pub(super) writers: Writers,
    merge: Merge,
}

impl Direct<'_> {
    /// Returns whether partial results of the call can be merged.
    pub(super) fn may_merge(&self) -> bool {
        self.is_exact() && self.may_stage()
    }

    /// Makes room for partial results of `places` each. Panics unless [`Direct::may_merge`].
    pub(super) fn partials(&self, count: usize, places: usize) -> Result<Partials> {
        assert!(self.may_merge(), "an exact reduction to contiguous rows");
        let line = LINE / size_of::<u32>();
        let rows = places.saturating_mul(self.row_bytes()).div_ceil(LINE).saturating_mul(line);
        let bits = Notes::Named.words(places, 0);
        let each = rows.saturating_add(bits.next_multiple_of(line));
        let mut words = Scratch::new(count.saturating_mul(each))?;
        let first = Shared(words.as_mut_ptr());
        let (writers, merge) = self.exact_writers();
        Ok(Partials { words, first, count, each, rows, bits, writers, merge })
    }

    /// Makes room for the partial results of pieces, if there are any.
    pub(super) fn partials_of(
        &self,
        pieces: &[Piece],
        ranges: &[Range<usize>],
    ) -> Result<Option<Partials>> {
        let partial = pieces.iter().filter(|piece| piece.partial.is_some());
        let places = partial.clone().map(|piece| ranges[piece.range].len()).max();
        places.map(|places| self.partials(partial.count(), places)).transpose()
    }

    /// Merges the partial results of pieces with the destination, after all pieces were written. The
    /// notes of each range are those of its first piece.
    pub(super) fn merge_pieces(
        &self,
        partials: &Partials,
        pieces: &[Piece],
        ranges: &[Range<usize>],
        space: &mut [u32],
    ) {
        let mut notes = vec![0..0; ranges.len()];
        for piece in pieces.iter().filter(|piece| piece.partial.is_none()) {
            notes[piece.range] = piece.notes.clone();
        }
        let numbered = pieces.iter().filter_map(|piece| piece.partial.zip(Some(piece)));
        let mut numbered: Vec<(usize, &Piece)> = numbered.collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        for (number, piece) in numbered {
            let (own, named) = (&ranges[piece.range], &mut space[notes[piece.range].clone()]);
            // SAFETY: a partial result has the places of its range. All are complete, and this thread
            // is the only one that writes.
            unsafe { partials.merge(self, number, 0..own.len(), self.place(own.start), named) };
        }
    }

    /// Returns the address of a place, if the destination is contiguous.
    ///
    /// # Safety
    /// The place lies inside of the axis.
    pub(super) unsafe fn place(&self, place: usize) -> *mut u8 {
        let mut first = 0;
        self.rows.runs(self.slab(0), |run| first = run.offsets[0]);
        // SAFETY: the caller's promise.
        unsafe { self.call.dst.origin().offset(first + place as isize * self.steps[0]) }
    }
}

impl Partials {
    /// Returns the address of the rows of a partial result, and its bits, after it has cleared them.
    ///
    /// # Safety
    /// No other thread uses this partial result at the same time.
    #[expect(clippy::mut_from_ref, reason = "each partial result belongs to one thread at a time")]
    pub(super) unsafe fn begin(&self, number: usize) -> (*mut u8, &mut [u32]) {
        assert!(number < self.count, "one of the partial results");
        // SAFETY: the buffer has this many words for each partial result, and the caller promises
        // that nobody else uses those of this one.
        unsafe {
            let first = self.first.get().add(number * self.each);
            let bits = std::slice::from_raw_parts_mut(first.add(self.rows), self.bits);
            bits.fill(0);
            (first.cast(), bits)
        }
    }

    /// Merges some places of a partial result with as many places of the destination from `to` on.
    /// They begin at a multiple of 32, or their bits are in one word. `named` tells which of these take
    /// part; all of them, if it is empty.
    ///
    /// # Safety
    /// The partial result is complete. It has these places, and no other thread has those of the
    /// destination.
    pub(super) unsafe fn merge(
        &self,
        direct: &Direct<'_>,
        number: usize,
        places: Range<usize>,
        to: *mut u8,
        named: &mut [u32],
    ) {
        let word = u32::BITS as usize;
        let first = number * self.each;
        let rows = &self.words[first..first + self.rows];
        let bits = &self.words[first + self.rows..][..self.bits];
        let bits = &bits[places.start / word..places.end.div_ceil(word)];
        let by = places.start * direct.row_bytes();
        let shift = places.start % word;
        assert!(by <= size_of_val(rows) && (shift == 0 || bits.len() == 1), "places of it");
        let shifted = bits.first().map(|bits| [bits >> shift]);
        let bits = if shift == 0 { bits } else { shifted.as_slice().as_flattened() };
        // SAFETY: the rows of the places lie inside of the partial result, and the caller's promise.
        unsafe {
            let from = rows.as_ptr().cast::<u8>().add(by);
            (self.merge)((to, from), (places.len(), direct.row_len()), bits, named);
        }
    }
}
