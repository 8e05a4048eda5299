//! Groups that several threads make: of slices of the index, or of its partition.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::Result;

use super::{Groups, Named, has_few_places, is_dense};
use crate::kernels::listing::{BLOCK, IndexReader, MOST_PLACES, blocks, read_places};
use crate::kernels::partition::{Partition, may_partition};
use crate::kernels::positions::Shared;
use crate::memory::Scratch;
use crate::threads;

/// The bytes that are copied in the time in which an entry is grouped: it is moved twice. (100k entries
/// into 100 places take 1.4 ms of processor time, 14 ns each.)
const COST: usize = 128;

/// The bytes that are copied in the time in which a byte is read that another thread has just written.
/// (The notes of 64 threads for 10k places, 2.5 MB, are read in 0.48 ms of processor time.)
pub(in crate::kernels) const MERGED: usize = 4;

/// The number of notes that are written and merged in the time in which an entry is partitioned. (The last
/// of 15,625 rows of 256 bytes at as many places on two threads: 96 us with two notes per entry, by a
/// partition 114 us.)
const NOTES: usize = 4;

impl Groups {
    /// Groups the entries of an index on an axis of `places`. Several threads share the work. If the
    /// index is dense, `number` gives the number below `bound` that is stored for an entry;
    /// otherwise it is the entry itself. Returns `None` if an entry is out of range, or if the index
    /// was not checked and can't be used without.
    pub(in crate::kernels) fn of(
        index: &IndexReader<'_>,
        places: usize,
        last: bool,
        bound: usize,
        number: impl Fn(usize) -> usize + Sync,
    ) -> Result<Option<Self>> {
        let entries = index.len();
        let parts = threads::parts(entries, COST);
        let few = has_few_places(entries.saturating_mul(NOTES), places);
        if last && parts > 1 && few && bound < u32::MAX as usize {
            return Groups::last_of_slices(index, places, bound, number);
        }
        if parts > 1 && may_partition(entries, places) && bound < u32::MAX as usize {
            let beside = |entry: usize| number(entry) as u32;
            let mut partition = Partition::new(index, places, parts, 1, entries)?;
            return match partition.fill(index, 0..entries, &beside)? {
                true => Groups::of_partition(partition, places, last, bound).map(Some),
                false => Ok(None),
            };
        }
        if last && is_dense(entries, places) && places <= MOST_PLACES {
            return Groups::last_of_all(index, places, bound, number);
        }
        let IndexReader::Checked(positions) = index else { return Ok(None) };
        positions.expect_within(places);
        let values = positions.values();
        let mut groups = Groups::of_numbers(entries, places, last, bound)?;
        groups.fill_numbers(entries, |entry| values[entry] as usize, number);
        Ok(Some(groups))
    }

    /// Finds the last entry of each place on one thread, and checks the entries at the same time.
    fn last_of_all(
        index: &IndexReader<'_>,
        places: usize,
        bound: usize,
        number: impl Fn(usize) -> usize,
    ) -> Result<Option<Self>> {
        let mut groups = Groups::of_numbers(index.len(), places, true, bound)?;
        groups.groups = places;
        let order = &mut groups.order;
        (0..places).for_each(|place| order.set(place, 0));
        let (mut values, mut named) = ([const { MaybeUninit::uninit() }; BLOCK], [0; BLOCK]);
        for block in blocks(0..index.len()) {
            let named = &mut named[..block.len()];
            if !read_places(index.values(block.clone(), &mut values), places, named) {
                return Ok(None);
            }
            let entries = named.iter().zip(block);
            entries.for_each(|(&place, entry)| order.set(place as usize, number(entry) + 1));
        }
        Ok(Some(groups))
    }

    /// Finds the last entry of each of a few places. Each thread notes the last entries of a slice of
    /// the index. Those of a later slice come after those of an earlier one.
    fn last_of_slices(
        index: &IndexReader<'_>,
        places: usize,
        bound: usize,
        number: impl Fn(usize) -> usize + Sync,
    ) -> Result<Option<Self>> {
        let (entries, slices) = (index.len(), threads::num_threads());
        let mut groups = Groups::of_numbers(entries, places, true, bound)?;
        groups.groups = places;
        let mut noted = Scratch::<u32>::new(slices * places)?;
        let (shared, inside) = (Shared(noted.as_mut_ptr()), AtomicBool::new(true));
        threads::run(slices, |slice| {
            // SAFETY: each slice has its own initialized part of the buffer.
            let noted =
                unsafe { std::slice::from_raw_parts_mut(shared.get().add(slice * places), places) };
            noted.fill(0);
            let (mut values, mut named) = ([const { MaybeUninit::uninit() }; BLOCK], [0; BLOCK]);
            for block in blocks(threads::part_of(entries, slices, slice)) {
                let named = &mut named[..block.len()];
                if !read_places(index.values(block.clone(), &mut values), places, named) {
                    return inside.store(false, Relaxed);
                }
                for (&place, entry) in named.iter().zip(block) {
                    noted[place as usize] = entry as u32 + 1;
                }
            }
        });
        let (order, noted) = (groups.order.shared(), &noted[..]);
        threads::split(places, MERGED * slices * size_of::<u32>(), |own| {
            // The notes of a slice are read in the order of memory, which the compiler vectorizes. (64
            // slices of 10k places: 0.2 ms of processor time, 0.85 ms place by place.)
            let mut last = [0; BLOCK];
            for block in blocks(own) {
                let last = &mut last[..block.len()];
                last.fill(0);
                for slice in noted.chunks_exact(places) {
                    let noted = &slice[block.clone()];
                    last.iter_mut().zip(noted).for_each(|(last, &noted)| *last = noted.max(*last));
                }
                for (place, &last) in block.zip(&*last) {
                    let last = (last as usize).checked_sub(1).map_or(0, |entry| number(entry) + 1);
                    // SAFETY: no other thread has this place.
                    unsafe { order.set(place, last) };
                }
            }
        });
        Ok(inside.into_inner().then_some(groups))
    }

    /// Groups partitioned entries. Each thread takes ranges of places.
    fn of_partition(
        partition: Partition<u32>,
        places: usize,
        last: bool,
        bound: usize,
    ) -> Result<Self> {
        let entries = partition.len();
        if !is_dense(entries, places) {
            return Groups::sorted(partition, places, bound);
        }
        let mut groups = Groups::of_numbers(entries, places, last, bound)?;
        groups.groups = places;
        let (order, ends) = (groups.order.shared(), groups.ends.shared());
        let starts = partition.starts();
        threads::run(partition.ranges().len(), |range| {
            let own = partition.ranges()[range].clone();
            let at = |place: u32| own.start + place as usize;
            // SAFETY: ranges are disjoint, so no other thread accesses the slots of these places.
            // The places of a range's items lie inside of it. The slots of a place in `order` are
            // as many as its entries.
            unsafe {
                if last {
                    own.clone().for_each(|place| order.set(place, 0));
                    partition
                        .each(range, |item| order.set(at(item.place), item.beside as usize + 1));
                    return;
                }
                own.clone().for_each(|place| ends.set(place, 0));
                partition.each(range, |item| _ = ends.update(at(item.place), |count| count + 1));
                // The prefix sum turns counts into starts. Filling turns starts into ends.
                let mut next = starts[range];
                for place in own.clone() {
                    next += ends.update(place, |_| next);
                }
                partition.each(range, |item| {
                    let slot = ends.update(at(item.place), |slot| slot + 1);
                    order.set(slot, item.beside as usize);
                });
            }
        });
        Ok(groups)
    }

    /// [`Groups::of_partition`] for a sparse index: sorts the entries of each range by place.
    fn sorted(partition: Partition<u32>, places: usize, bound: usize) -> Result<Self> {
        let (entries, ranges) = (partition.len(), partition.ranges().to_vec());
        // A key is a place and, below it, the number of an entry.
        let mut keys = Scratch::<u64>::new(entries)?;
        let mut distinct = vec![0; ranges.len()];
        let starts = partition.starts();
        let (shared, counts) = (Shared(keys.as_mut_ptr()), Shared(distinct.as_mut_ptr()));
        threads::run(ranges.len(), |range| {
            // SAFETY: the parts of different ranges don't overlap, and `starts` ends with the
            // number of entries. There is a count for each range.
            let (keys, count) = unsafe {
                let len = starts[range + 1] - starts[range];
                let keys = shared.get().add(starts[range]);
                (std::slice::from_raw_parts_mut(keys, len), &mut *counts.get().add(range))
            };
            let mut to = keys.iter_mut();
            partition.each(range, |item| {
                let place = (ranges[range].start as u64) + u64::from(item.place);
                if let Some(key) = to.next() {
                    *key = place << 32 | u64::from(item.beside);
                }
            });
            keys.sort_unstable();
            *count = keys.chunk_by(|a, b| a >> 32 == b >> 32).count();
        });
        drop(partition);
        let named = Named::Entries(keys);
        let mut groups = Groups::of_named(entries, places, false, bound, named)?;
        groups.groups = distinct.iter().sum();
        let (order, ends) = (groups.order.shared(), groups.ends.shared());
        let Named::Entries(keys) = &groups.named else { unreachable!("just made") };
        let keys = &keys[..];
        threads::run(ranges.len(), |range| {
            let first: usize = distinct[..range].iter().sum();
            let mut at = starts[range];
            let keys = &keys[starts[range]..starts[range + 1]];
            let same = keys.chunk_by(|a, b| a >> 32 == b >> 32);
            for (group, same) in (first..).zip(same) {
                // SAFETY: each range has its own part of the entries, and of the groups.
                unsafe {
                    for key in same {
                        order.set(at, (key & u64::from(u32::MAX)) as usize);
                        at += 1;
                    }
                    ends.set(group, at);
                }
            }
        });
        Ok(groups)
    }
}
