//! The plan of many threads: the entries are partitioned by ranges of places, and threads share the
//! ranges.

use std::ops::Range;

use inlay_core::Result;

use super::super::direct::{Beside, Direct, Task, Writers};
use super::super::notes::Notes;
use super::pieces::Cut;
use crate::arch::caches::caches;
use crate::kernels::listing::IndexReader;
use crate::kernels::partition::{Item, Partition};
use crate::kernels::reducer::prefetch_far;
use crate::memory::{Plain, Scratch};
use crate::threads;
use crate::tuning::{TILE, WAVE};
use crate::walk::Run;

impl Direct<'_> {
    /// Returns the update of an entry, if rows are single values of the size of a `W`.
    #[inline(always)]
    pub(super) fn word<W: Plain>(&self, entry: usize) -> W {
        // SAFETY: the plan is chosen for contiguous values, and there is one for each entry.
        unsafe { self.call.updates.origin().cast::<W>().add(entry).read_unaligned() }
    }

    /// Writes all entries. Threads share ranges of places.
    pub(super) fn partitioned<P: Beside>(
        &self,
        parts: usize,
        index: &IndexReader<'_>,
        beside: impl Fn(usize) -> P + Sync,
    ) -> Result<bool> {
        let (places, notes) = (self.places(), Notes::of(self.call.combine));
        let wave = wave(index.len(), places, self.row_bytes(), notes);
        let align = self.align(parts);
        let mut entries = Partition::new(index, places, parts, align, wave)?;
        if !entries.fill(index, 0..wave, &beside)? {
            return Ok(false);
        }
        let ranges = entries.ranges().to_vec();
        // With counts there is one wave, so these are all entries of a range. Otherwise an estimate is
        // enough.
        let len = |range: usize| match notes {
            Notes::Counted { .. } => entries.len_of(range),
            _ => entries.expected(range, wave),
        };
        let lens: Vec<usize> = (0..ranges.len()).map(len).collect();
        let sizes = lens.iter().copied().zip(ranges.iter().map(|own| own.len()));
        let cut = if self.may_merge() { Cut::Chunks(entries.chunks()) } else { Cut::Columns };
        let (pieces, words) = self.pieces(sizes, wave, cut);
        let mut space = Scratch::<u32>::new(words)?;
        let partials = self.partials_of(&pieces, &ranges)?;
        let by_range = self.copy_shared_base(&pieces, &ranges);
        let writers = self.writers();
        for start in (0..index.len()).step_by(wave) {
            let own = start..(start + wave).min(index.len());
            let (first, last) = (start == 0, own.end == index.len());
            if !first && !entries.fill(index, own, &beside)? {
                return Ok(false);
            }
            self.each_piece(&pieces, &mut space, |piece, run, space| {
                let own = &ranges[piece.range];
                let chunks = threads::part_of(entries.chunks(), piece.part.1, piece.part.0);
                let write = |writers: Writers, stage, space: &mut [u32]| {
                    entries.each_segment(piece.range, chunks.clone(), |segment, next| {
                        let listed = P::listed(segment, next, self.is_flat());
                        let task = Task { run, own, first: 0, listed, stage };
                        // SAFETY: as for `Slice::write`. The places of a segment lie inside of its
                        // range, and numbers are those of entries or were checked by the caller.
                        unsafe { (writers.write)(self, &task, space) };
                    });
                };
                if let Some((partials, number)) = partials.as_ref().zip(piece.partial) {
                    // SAFETY: each piece has a partial result of its own.
                    let (stage, bits) = unsafe { partials.begin(number) };
                    return write(partials.writers, Some(stage), bits);
                }
                if first {
                    notes.clear(space);
                    if by_range[piece.range] {
                        self.copy_base(own);
                    }
                } else {
                    self.prefetch_places(&run, own);
                }
                self.staged(&run, own, |stage| {
                    write(writers, stage, space);
                    if last {
                        self.end((run, stage), own, writers, space);
                    }
                });
            });
            if let Some(partials) = &partials {
                self.merge_pieces(partials, &pieces, &ranges, &mut space);
            }
        }
        Ok(true)
    }

    /// Prefetches the places of a range, if a cache holds them. Stores miss the cache one after the other,
    /// so that even few misses take most of the time of an assignment.
    fn prefetch_places(&self, run: &Run<3>, own: &Range<usize>) {
        let bytes = own.len() * self.row_bytes();
        if self.may_stage() && bytes <= TILE.get() {
            let by = run.offsets[0] + own.start as isize * self.steps[0];
            prefetch_far(self.call.dst.origin().wrapping_offset(by), bytes);
        }
    }
}

/// Returns how many of the entries are partitioned at a time, with rows of `row` bytes. What is
/// partitioned should stay in the last-level cache, unless the destination is too large for it: then
/// each place should be written at one time.
fn wave(entries: usize, places: usize, row: usize, notes: Notes) -> usize {
    // The list of overflows of counts is made for all entries.
    let counts = matches!(notes, Notes::Counted { .. });
    let whole = counts || places.saturating_mul(row) > caches().last / 2;
    let near = (WAVE.get() / (row + size_of::<Item<u64>>())).max(IN_WAVE * threads::num_threads());
    // All waves are equally long.
    let waves = if whole { 1 } else { entries.div_ceil(near) };
    entries.div_ceil(waves.max(1)).max(1)
}

/// The fewest entries of a thread in a wave. With fewer, threads would wait for each other more often
/// than they would work. The items of a thread stay in its second-level cache.
const IN_WAVE: usize = 16 << 10;
