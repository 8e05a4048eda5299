//! The plan of few threads: each reads the whole index, and writes the entries whose places it owns.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::Result;

use super::super::direct::{Beside, Direct, Listed, Task, Writers};
use super::super::notes::Notes;
use super::pieces::Cut;
use crate::kernels::copy::copy_to;
use crate::kernels::listing::{BLOCK, IndexReader, List};
use crate::kernels::ranges::Ranges;
use crate::memory::Scratch;
use crate::walk::Run;

impl Direct<'_> {
    /// Writes all entries. Threads share ranges of places, and each reads the whole index.
    pub(super) fn scanned(&self, parts: usize, index: &IndexReader<'_>) -> Result<bool> {
        let ranges = Ranges::new(index, self.places(), parts, self.align(parts)).all;
        // Any range may have all entries, as far as the list of overflows of counts is concerned.
        let sizes = ranges.iter().map(|own| (index.len(), own.len()));
        let (pieces, words) = self.pieces(sizes, usize::MAX, Cut::Columns);
        let mut space = Scratch::<u32>::new(words)?;
        if let Some(base) = self.call.base {
            copy_to(self.call.dst, base);
        }
        let (writers, notes) = (self.writers(), Notes::of(self.call.combine));
        let inside = AtomicBool::new(true);
        self.each_piece(&pieces, &mut space, |piece, run, space| {
            notes.clear(space);
            let own = &ranges[piece.range];
            self.staged(&run, own, |stage| {
                if !self.scan((run, stage), own, index, writers, space) {
                    inside.store(false, Relaxed);
                }
            });
        });
        Ok(inside.into_inner())
    }

    /// Writes the entries that name a place of `own`. Returns whether all entries are in range.
    pub(super) fn scan(
        &self,
        (run, stage): (Run<3>, Option<*mut u8>),
        own: &Range<usize>,
        index: &IndexReader<'_>,
        writers: Writers,
        space: &mut [u32],
    ) -> bool {
        let at_once = self.assigns_at_once();
        let words = self.of_values() && self.call.dst.dtype().size() == size_of::<u32>();
        let (mut list, mut room) = (List::new(), [const { MaybeUninit::uninit() }; BLOCK]);
        let mut inside = true;
        for block in index.blocks() {
            let values = index.values(block.clone(), &mut room);
            let first = if self.call.selected.is_some() { 0 } else { block.start };
            let mut task = Task { run, own, first, listed: Listed::InOrder(&[]), stage };
            // SAFETY: as for `Slice::write`. `List` and `assign_scanned` keep places inside of the
            // range and entries inside of the block, even if another thread changes the index. With
            // `words`, a row of updates is one contiguous word for each entry.
            unsafe {
                if let Some(assign) = at_once {
                    inside &= assign(self, &task, values).is_some();
                    continue;
                }
                let data = (self.origins(&task).1, self.steps[2]);
                if let Some(selected) = self.call.selected {
                    let selected = &selected[block];
                    let data = (selected.as_ptr().cast(), size_of::<i64>() as isize);
                    inside &= list.fill::<false>(values, self.places(), own, data);
                    list.replace_by(selected);
                } else if words {
                    inside &= list.fill::<true>(values, self.places(), own, data);
                } else {
                    inside &= list.fill::<false>(values, self.places(), own, data);
                }
                task.listed = u32::listed(list.items(), &[], words);
                (writers.write)(self, &task, space);
            }
        }
        self.end((run, stage), own, writers, space);
        inside
    }
}
