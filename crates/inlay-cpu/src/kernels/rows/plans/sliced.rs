//! The plan for a sorted index: threads share slices of it.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{Combine, Result};

use super::super::direct::{Direct, Notes};
use super::Found;
use super::slice::{Room, Slice};
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
        let ends = slices[1..].iter().copied().chain([(index.len(), self.places())]);
        let slices = slices.iter().zip(ends).map(|(start, end)| (start.0..end.0, start.1..end.1));
        let slices: Vec<(Range<usize>, Range<usize>)> = slices.collect();
        let sizes = slices.iter().map(|(entries, own)| (entries.len(), own.len()));
        let (pieces, words) = self.pieces(sizes, index.len());
        let mut space = Scratch::<u32>::new(words)?;
        match (self.call.base, index) {
            (Some(base), _) => copy_to(self.call.dst, base),
            (None, IndexReader::Checked(positions)) => {
                let (values, sorted) = (positions.values(), AtomicBool::new(true));
                threads::run(slices.len(), |slice| {
                    let (entries, own) = &slices[slice];
                    if !self.owns_all(own, &values[entries.clone()]) {
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
            let (entries, own) = &slices[piece.range];
            let mut room: Room = [const { MaybeUninit::uninit() }; BLOCK];
            let mut slice = Slice::new(self, index, entries.clone(), own, &mut room);
            match slice.write(run, writers, space) {
                Found::All => {}
                Found::Outside => inside.store(false, Relaxed),
                Found::Elsewhere => sorted.store(false, Relaxed),
            }
        });
        Ok(sorted.into_inner().then_some(inside.into_inner()))
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
