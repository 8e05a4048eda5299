//! The plan for a sorted index: threads share slices of it.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{Combine, Result};

use super::super::direct::Direct;
use super::super::notes::Notes;
use super::Found;
use super::pieces::Cut;
use super::slice::{Room, Slice};
use crate::arch::caches::caches;
use crate::kernels::copy::copy_to;
use crate::kernels::listing::{BLOCK, IndexReader};
use crate::memory::Scratch;
use crate::threads;

impl Direct<'_> {
    /// Writes all entries of a sorted index. Each slice of the entries owns the places that it
    /// names. Returns `None` if the index turns out not to be sorted; then nothing was written,
    /// unless the destination is fresh.
    pub(super) fn sliced(
        &self,
        slices: &[(usize, usize)],
        index: &IndexReader<'_>,
    ) -> Result<Option<bool>> {
        // If the reduction is exact, a slice may begin inside of a place. It owns the places up to the
        // first one of the next slice, and reduces the entries of its own first place, its head, to a
        // partial result.
        let heads = self.may_merge();
        let end = |place: usize| if heads { place + 1 } else { place };
        let ends = slices[1..].iter().map(|&(entry, place)| (entry, end(place)));
        let ends = ends.chain([(index.len(), self.places())]);
        let slices = slices.iter().zip(ends).enumerate().map(|(slice, (start, to))| {
            let first = if slice == 0 { 0 } else { end(start.1) };
            (start.0..to.0, first..to.1)
        });
        let slices: Vec<(Range<usize>, Range<usize>)> = slices.collect();
        // Splits the entries of a slice into those of its head and the others.
        let split = |slice: usize| {
            let (entries, own) = &slices[slice];
            let head = match own.start.checked_sub(1).filter(|_| heads && slice > 0) {
                Some(place) => index.end_of(entries.clone(), place, self.places()),
                None => entries.start,
            };
            (entries.start..head, head..entries.end)
        };
        let sizes = slices.iter().map(|(entries, own)| (entries.len(), own.len()));
        let cut = if heads { Cut::Nothing } else { Cut::Columns };
        let (pieces, words) = self.pieces(sizes, index.len(), cut);
        let mut space = Scratch::<u32>::new(words)?;
        let partials = heads.then(|| self.partials(slices.len(), 1)).transpose()?;
        let owned: Vec<Range<usize>> = slices.iter().map(|(_, own)| own.clone()).collect();
        let longest = owned.iter().map(Range::len).max().unwrap_or(0);
        let near = longest.saturating_mul(self.row_bytes()) <= caches().second;
        let mut by_range = vec![false; slices.len()];
        match (self.call.base, index) {
            (Some(_), _) if near => {
                by_range = self.copy_shared_base(&pieces, &owned);
            }
            (Some(base), _) => copy_to(self.call.dst, base),
            (None, IndexReader::Checked(positions)) => {
                let (values, sorted) = (positions.values(), AtomicBool::new(true));
                threads::run(slices.len(), |slice| {
                    // The entries of the head name its place, as `end_of` has found for some, and so
                    // do the others if the index is sorted.
                    let (own, (head, body)) = (&slices[slice].1, split(slice));
                    let first = own.start.saturating_sub(1)..own.start;
                    let heads = head.is_empty() || self.owns_all(&first, &values[head]);
                    if !heads || !self.owns_all(own, &values[body]) {
                        sorted.store(false, Relaxed);
                    }
                });
                if !sorted.into_inner() {
                    return Ok(None);
                }
            }
            (None, IndexReader::Raw(_)) => unreachable!("in place, the index is checked first"),
        }
        let (writers, notes) = (self.writers(), Notes::of(self.call.combine));
        let (inside, sorted) = (AtomicBool::new(true), AtomicBool::new(true));
        self.each_piece(&pieces, &mut space, |piece, run, space| {
            notes.clear(space);
            let mut room: Room = [const { MaybeUninit::uninit() }; BLOCK];
            let mut write = |entries: Range<usize>, (own, stage), writers, space: &mut [u32]| {
                let mut slice = Slice::new(self, index, entries, (own, stage), &mut room);
                match slice.write(run, writers, space) {
                    Found::All => {}
                    Found::Outside => inside.store(false, Relaxed),
                    Found::Elsewhere => sorted.store(false, Relaxed),
                }
            };
            let (own, (head, body)) = (&slices[piece.range].1, split(piece.range));
            if by_range[piece.range] {
                self.copy_base(own);
            }
            let first = own.start.saturating_sub(1)..own.start;
            if let Some(partials) = &partials {
                // SAFETY: each slice has a partial result of its own.
                let (stage, bits) = unsafe { partials.begin(piece.range) };
                if !head.is_empty() {
                    write(head, (&first, Some(stage)), partials.writers, bits);
                }
            }
            write(body, (own, None), writers, space);
        });
        if !sorted.into_inner() {
            return Ok(None);
        }
        if let Some(partials) = &partials {
            let mut notes = vec![0..0; slices.len()];
            pieces.iter().for_each(|piece| notes[piece.range] = piece.notes.clone());
            // The last slice that owns places, and with them the first place of those after it.
            let mut owner = 0;
            for (slice, (_, own)) in slices.iter().enumerate().skip(1) {
                let place = own.start - 1;
                let last = slices[owner].1.len() - 1;
                let (word, bit) = (last / u32::BITS as usize, last % u32::BITS as usize);
                let mut named = space[notes[owner].clone()].get_mut(word);
                let mut takes_part = named.as_ref().map(|named| **named >> bit & 1);
                // SAFETY: all partial results have one place and are complete. This thread is the only
                // one that writes.
                unsafe {
                    let to = self.place(place);
                    partials.merge(self, slice, 0..1, to, takes_part.as_mut_slice());
                }
                if let (Some(named), Some(takes_part)) = (&mut named, takes_part) {
                    **named |= takes_part << bit;
                }
                if !own.is_empty() {
                    owner = slice;
                }
            }
        }
        Ok(Some(inside.into_inner()))
    }

    /// Returns whether a slice that owns these places may have entries with these positions.
    pub(super) fn owns_all(&self, own: &Range<usize>, positions: &[i64]) -> bool {
        let [first, last] = [own.start as i64, self.last(own) as i64];
        positions.iter().fold(true, |all, &at| all & (at >= first) & (at <= last))
    }

    /// Returns the last place that an entry of a slice may name. An assignment to the first place of
    /// the next slice has no effect, because that slice assigns it again.
    pub(super) fn last(&self, own: &Range<usize>) -> usize {
        let assigns = self.call.combine == Combine::Assign && own.end < self.places();
        if assigns { own.end } else { own.end - 1 }
    }
}
