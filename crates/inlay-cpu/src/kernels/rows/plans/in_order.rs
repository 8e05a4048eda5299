//! The plan of one thread, or of threads that share slabs: all entries in index order.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::Result;

use super::super::direct::{Direct, Listed, Task, Writers};
use super::super::notes::Notes;
use super::Found;
use super::slice::{Room, Slice};
use crate::kernels::copy::copy_to;
use crate::kernels::listing::{BLOCK, IndexReader, blocks, read_places};
use crate::kernels::partition::Item;
use crate::kernels::positions::Shared;
use crate::memory::{Scratch, Space};
use crate::threads;

/// The number of entries that are written together if the whole index was read before. The places may
/// all be noted after one of these blocks, and prefetches end with it.
const WRITTEN: usize = 16 * BLOCK;

impl Direct<'_> {
    /// Writes all entries in index order. Threads share the slabs.
    pub(super) fn in_order(&self, parts: usize, index: &IndexReader<'_>) -> Result<bool> {
        let notes = Notes::of(self.call.combine);
        let words = notes.words(self.places(), index.len());
        let mut space = Space::<u32>::new(words.saturating_mul(parts))?;
        // The index is read once for all slabs. In place, all of it is checked before the first write.
        let before = self.slabs() > 1 || self.call.base.is_none();
        let mut places = Scratch::<u32>::new(if before { index.len() } else { 0 })?;
        if before && !self.read_all(index, &mut places) {
            return Ok(false);
        }
        let item = |(&place, &row): (&u32, &i64)| Item { place, beside: row as u32 };
        let items: Option<Vec<Item<u32>>> =
            self.call.selected.map(|selected| places.iter().zip(selected).map(item).collect());
        // Blocks of entries that are written together: the first entry of each, and its list.
        let block = |start: usize| {
            let end = (start + WRITTEN).min(index.len());
            match &items {
                Some(items) => (0, Listed::Numbered(&items[start..end], &items[end..])),
                None => (start, Listed::InOrder(&places[start..end])),
            }
        };
        if let Some(base) = self.call.base {
            copy_to(self.call.dst, base);
        }
        let (writers, space) = (self.writers(), Shared(space.as_mut_ptr()));
        let (own, inside) = (0..self.places(), AtomicBool::new(true));
        threads::run(parts, |part| {
            // SAFETY: the buffer has this many initialized words for each part.
            let space =
                unsafe { std::slice::from_raw_parts_mut(space.get().add(part * words), words) };
            let slabs = threads::part_of(self.slabs(), parts, part);
            for slab in slabs.clone() {
                // All slabs but the first may be able to use the notes of the first one.
                let again = writers.again.filter(|_| slab > slabs.start);
                if again.is_none() {
                    notes.clear(space);
                }
                let writers = Writers { write: again.unwrap_or(writers.write), ..writers };
                self.rows.runs(self.slab(slab), |run| {
                    if before {
                        for (first, listed) in (0..index.len()).step_by(WRITTEN).map(block) {
                            let task = Task { run, own: &own, first, listed, stage: None };
                            // SAFETY: as for `Slice::write`; `read_all` has checked the places.
                            unsafe { (writers.write)(self, &task, space) };
                        }
                        return self.end((run, None), &own, writers, space);
                    }
                    let mut room: Room = [const { MaybeUninit::uninit() }; BLOCK];
                    let mut slice =
                        Slice::new(self, index, 0..index.len(), (&own, None), &mut room);
                    if slice.write(run, writers, space) != Found::All {
                        inside.store(false, Relaxed);
                    }
                });
            }
        });
        Ok(inside.into_inner())
    }

    /// Reads the places of all entries. Returns false if an entry is out of range.
    pub(super) fn read_all(&self, index: &IndexReader<'_>, places: &mut [u32]) -> bool {
        assert_eq!(places.len(), index.len(), "a place for each entry");
        let (to, inside) = (Shared(places.as_mut_ptr()), AtomicBool::new(true));
        threads::split(index.len(), size_of::<i64>() + size_of::<u32>(), |own| {
            let mut values = [const { MaybeUninit::uninit() }; BLOCK];
            for block in blocks(own) {
                // SAFETY: blocks lie inside of the places, and threads have different ones.
                let places = unsafe {
                    std::slice::from_raw_parts_mut(to.get().add(block.start), block.len())
                };
                if !read_places(index.values(block, &mut values), self.places(), places) {
                    return inside.store(false, Relaxed);
                }
            }
        });
        inside.into_inner()
    }
}
