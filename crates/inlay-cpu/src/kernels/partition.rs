//! Partitions the entries of an index by ranges of places, so that threads can work off the ranges
//! independently of each other.
//!
//! The index is read in chunks. The entries of a chunk are moved to a region of memory in which the
//! entries of each range are contiguous, in index order. A thread that works off a range takes its
//! entries chunk by chunk, so it sees them in index order. The work is the same with any number of
//! threads: each entry is read once, moved once and used once.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use inlay_core::Result;

use super::listing::{BLOCK, IndexReader, MOST_PLACES, read_places};
use super::positions::Shared;
use super::ranges::{MOST_RANGES, Map, Ranges};
use super::reducer::prefetch;
use crate::memory::{Plain, Scratch};
use crate::threads;

/// The most entries of a chunk. What is written of a chunk stays in the second-level cache, and the
/// number of an entry in its chunk fits into 16 bits.
const CHUNK: usize = 32 << 10;

/// The fewest entries of a chunk per range, on average. With fewer, a thread would jump from chunk
/// to chunk more often than it would work.
const IN_SEGMENT: usize = 64;

/// An entry: its place, relative to the start of its range, and beside it the number of its row of
/// updates, or the update itself.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(super) struct Item<P> {
    pub(super) place: u32,
    pub(super) beside: P,
}

impl<P: Plain> Item<P> {
    fn new(place: u32, beside: P) -> Self {
        Item { place, beside }
    }

    /// Writes the item. An item of two words is written by one store, which takes 0.85 of the time.
    ///
    /// # Safety
    /// It can be written.
    #[inline(always)]
    unsafe fn write(self, to: *mut Self) {
        // SAFETY: the caller's promise. Both types have the size that was compared.
        unsafe {
            if const { size_of::<Self>() == size_of::<u64>() } {
                let beside: u32 = std::mem::transmute_copy(&{ self.beside });
                let both = if cfg!(target_endian = "little") {
                    u64::from(beside) << 32 | u64::from(self.place)
                } else {
                    u64::from(self.place) << 32 | u64::from(beside)
                };
                to.cast::<u64>().write_unaligned(both);
            } else {
                to.write(self);
            }
        }
    }
}

/// Entries that are partitioned by ranges of places.
pub(super) struct Partition<P> {
    ranges: Ranges,
    places: usize,
    /// The items, 32-bit words each of them.
    items: Scratch<u32>,
    /// For each chunk, where the items of each range begin, and where those of the last one end.
    starts: Scratch<u32>,
    /// The number of entries of a chunk.
    chunk: usize,
    /// The number of entries.
    len: usize,
    payload: PhantomData<P>,
}

/// Returns whether an index of `entries` on an axis of `places` can be partitioned.
pub(super) fn may_partition(entries: usize, places: usize) -> bool {
    (1..=MOST_PLACES).contains(&places) && entries <= u32::MAX as usize
}

impl<P: Plain> Partition<P> {
    /// Prepares a partition of an index on an axis of `places` into about `parts` ranges, which
    /// begin at multiples of `align` places and have about equally many entries. At most `most`
    /// entries are partitioned at a time.
    pub(super) fn new(
        index: &IndexReader<'_>,
        places: usize,
        parts: usize,
        align: usize,
        most: usize,
    ) -> Result<Self> {
        assert!(may_partition(index.len(), places), "32-bit numbers");
        let ranges = Ranges::new(index, places, parts, align);
        // The stages of all threads together are smaller than the items.
        let even = most.div_ceil(4 * parts).max(ranges.all.len() * IN_SEGMENT).clamp(BLOCK, CHUNK);
        // All threads have equally many chunks, unless that makes the chunks too small.
        let threads = threads::num_threads();
        let chunks = most.div_ceil(even);
        let even =
            if chunks < threads { even } else { most.div_ceil(chunks.next_multiple_of(threads)) };
        let chunk = even.next_multiple_of(IN_SEGMENT).min(CHUNK);
        let items = Scratch::new(most.saturating_mul(Self::WORDS))?;
        let starts = Scratch::new(most.div_ceil(chunk) * (ranges.all.len() + 1))?;
        Ok(Partition { ranges, places, items, starts, chunk, len: 0, payload: PhantomData })
    }

    /// Replaces the entries by some of an index. `beside` gives the data of an entry. Returns false
    /// if an entry is out of range.
    pub(super) fn fill(
        &mut self,
        index: &IndexReader<'_>,
        entries: Range<usize>,
        beside: &(impl Fn(usize) -> P + Sync),
    ) -> Result<bool> {
        self.len = entries.len();
        let (chunk, count, chunks) = (self.chunk, self.ranges.all.len() + 1, self.chunks());
        let room =
            self.items.len() / Self::WORDS >= self.len && self.starts.len() >= chunks * count;
        assert!(room, "no more entries than were prepared for");
        let to = Shared(self.items.as_mut_ptr());
        let starts = Shared(self.starts.as_mut_ptr());
        let (inside, failed) = (AtomicBool::new(true), Mutex::new(None));
        let (this, parts) = (&*self, chunks.min(threads::most_parts()));
        let work = |number: usize, stage: &mut Stage<P>| {
            let own = number * chunk..((number + 1) * chunk).min(this.len);
            // SAFETY: both buffers have an initialized part for each chunk, as was just checked,
            // which no other thread accesses.
            let to = unsafe {
                let to = to.get().add(own.start * Self::WORDS).cast::<Item<P>>();
                let starts = starts.get().add(number * count);
                (
                    std::slice::from_raw_parts_mut(to, own.len()),
                    std::slice::from_raw_parts_mut(starts, count),
                )
            };
            let own = entries.start + own.start..entries.start + own.end;
            stage.fill(index, own, (&this.ranges.map, this.places), to, beside)
        };
        threads::run(parts, |part| {
            // A thread uses one stage for all of its chunks, so that it stays in its caches.
            let done = Stage::new(&this.ranges, chunk).and_then(|mut stage| {
                threads::part_of(chunks, parts, part)
                    .try_fold(true, |inside, number| Ok(inside && work(number, &mut stage)?))
            });
            match done {
                Ok(true) => {}
                Ok(false) => inside.store(false, Relaxed),
                Err(error) => {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(inside.into_inner()),
        }
    }

    /// Returns the number of chunks.
    pub(super) fn chunks(&self) -> usize {
        self.len.div_ceil(self.chunk)
    }

    /// The number of 32-bit words of an item.
    const WORDS: usize = size_of::<Item<P>>() / size_of::<u32>();

    /// Returns the ranges of places. They are in order and cover the whole axis.
    pub(super) fn ranges(&self) -> &[Range<usize>] {
        &self.ranges.all
    }

    /// Returns the number of entries that a range is expected to have of `len`.
    pub(super) fn expected(&self, range: usize, len: usize) -> usize {
        self.ranges.expected(range, len)
    }

    /// Returns the items of a range in one chunk. There are none in chunks after the last one.
    fn segment(&self, range: usize, chunk: usize) -> &[Item<P>] {
        let at = chunk * (self.ranges.all.len() + 1) + range;
        if chunk >= self.chunks() {
            return &[];
        }
        let first = chunk * self.chunk;
        let (start, end) = (first + self.starts[at] as usize, first + self.starts[at + 1] as usize);
        let words = &self.items[start * Self::WORDS..end * Self::WORDS];
        // SAFETY: an item consists of this many words, needs no larger alignment, and is valid with
        // any bits.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), end - start) }
    }

    /// Calls `visit` with the items of a range in some chunks, in index order: a segment, and the one
    /// after it, which may be prefetched.
    pub(super) fn each_segment<'s>(
        &'s self,
        range: usize,
        chunks: Range<usize>,
        mut visit: impl FnMut(&'s [Item<P>], &'s [Item<P>]),
    ) {
        let mut next = self.segment(range, chunks.start);
        for chunk in chunks.start + 1..=chunks.end {
            let segment = std::mem::replace(&mut next, self.segment(range, chunk));
            prefetch(next.as_ptr().cast(), size_of_val(next).min(AHEAD));
            if !segment.is_empty() {
                visit(segment, next);
            }
        }
    }

    /// Calls `visit` with each item of a range, in index order.
    pub(super) fn each(&self, range: usize, mut visit: impl FnMut(Item<P>)) {
        self.each_segment(range, 0..self.chunks(), |segment, _| {
            segment.iter().for_each(|item| visit(*item))
        });
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns for each range the number of entries of all ranges before it, and at the end the
    /// number of all entries.
    pub(super) fn starts(&self) -> Vec<usize> {
        let mut before = 0;
        let lens = (0..self.ranges.all.len()).map(|range| self.len_of(range));
        let ends = lens.map(|len| {
            before += len;
            before
        });
        std::iter::once(0).chain(ends).collect()
    }

    /// Returns the number of entries of a range.
    pub(super) fn len_of(&self, range: usize) -> usize {
        (0..self.chunks()).map(|chunk| self.segment(range, chunk).len()).sum()
    }
}

/// The bytes at the start of a segment that are prefetched. The hardware prefetches the rest.
const AHEAD: usize = 512;

/// The items of a chunk while they are partitioned. Each range has room for the number of entries
/// that is expected of it. If it gets more, they are written over those of the next range, and all
/// of them are partitioned again. That is found out after each block.
struct Stage<P> {
    items: Scratch<u32>,
    /// For each range, where its next item goes, and its first place.
    next: [[u32; 2]; MOST_RANGES],
    /// Where the items of each range begin, and where those of the last one may end.
    starts: [u32; MOST_RANGES + 1],
    /// The most items that each range is expected to get.
    expected: Vec<u32>,
    ranges: usize,
    payload: PhantomData<P>,
}

impl<P: Plain> Stage<P> {
    /// Makes a stage for chunks of up to `len` entries.
    fn new(ranges: &Ranges, len: usize) -> Result<Self> {
        let most = (0..ranges.all.len()).map(|range| ranges.most(range, len) as u32);
        let expected: Vec<u32> = most.collect();
        let room = expected.iter().map(|&room| room as usize).sum::<usize>() + BLOCK;
        let mut next = [[0; 2]; MOST_RANGES];
        next.iter_mut().zip(&ranges.all).for_each(|(next, range)| next[1] = range.start as u32);
        Ok(Stage {
            items: Scratch::new(room * Partition::<P>::WORDS)?,
            next,
            starts: [0; MOST_RANGES + 1],
            expected,
            ranges: ranges.all.len(),
            payload: PhantomData,
        })
    }

    /// Moves the entries of a chunk to `to`, and writes to `starts` where those of each range begin.
    /// Returns false if an entry is out of range; then both are unspecified.
    fn fill(
        &mut self,
        index: &IndexReader<'_>,
        own: Range<usize>,
        (map, places): (&Map, usize),
        (to, starts): (&mut [Item<P>], &mut [u32]),
        beside: &impl Fn(usize) -> P,
    ) -> Result<bool> {
        let (mut values, mut named) = ([const { MaybeUninit::uninit() }; BLOCK], [0; BLOCK]);
        let expected = std::mem::take(&mut self.expected);
        self.begin(&expected);
        self.expected = expected;
        let mut fits = true;
        for start in own.clone().step_by(BLOCK) {
            let block = start..(start + BLOCK).min(own.end);
            let named = &mut named[..block.len()];
            if !read_places(index.values(block, &mut values), places, named) {
                return Ok(false);
            }
            // If a block has places of one range only, the other blocks often do so too.
            fits &= self.ranges == 1 || map.single(named).is_none();
            if !fits {
                break;
            }
            let staged = self.items.as_mut_ptr().cast();
            // SAFETY: every range fits into its room, so its next item is in the stage, after which
            // there is room for a block.
            unsafe { self.put(staged, map, None, named, |k| beside(start + k)) };
            fits = self.fits();
        }
        if fits {
            let mut at = 0;
            for (range, start) in starts[..self.ranges].iter_mut().enumerate() {
                let staged = self.items(range);
                *start = at as u32;
                to[at..at + staged.len()].copy_from_slice(staged);
                at += staged.len();
            }
            starts[self.ranges] = at as u32;
            assert_eq!(at, own.len(), "an item for each entry");
            return Ok(true);
        }
        // The ranges have other shares of this chunk than of the whole index. The entries are
        // counted before they are moved. Another thread may change the index, so it is copied first.
        let (mut space, mut counts) = (Scratch::<u32>::new(own.len())?, [0; MOST_RANGES]);
        let mut singles = [None; CHUNK / BLOCK];
        let blocks = own.clone().step_by(BLOCK).zip(space.chunks_mut(BLOCK));
        for ((start, named), single) in blocks.zip(&mut singles) {
            let block = start..start + named.len();
            if !read_places(index.values(block, &mut values), places, named) {
                return Ok(false);
            }
            *single = map.single(named);
            match *single {
                Some(range) => counts[range] += named.len() as u32,
                None if map.splits() => count::<true>(map, named, &mut counts),
                None => count::<false>(map, named, &mut counts),
            }
        }
        self.begin(&counts);
        starts.copy_from_slice(&self.starts[..=self.ranges]);
        let room = to.len() == own.len() && starts[self.ranges] as usize == own.len();
        assert!(room, "an item for each entry");
        let to = to.as_mut_ptr();
        let blocks = own.clone().step_by(BLOCK).zip(space.chunks(BLOCK));
        for ((start, named), single) in blocks.zip(singles) {
            // SAFETY: the same places were counted, so each entry has an item of its own.
            unsafe { self.put(to, map, single, named, |k| beside(start + k)) };
        }
        Ok(true)
    }

    /// Removes all items, and makes room for the given number of items of each range.
    fn begin(&mut self, room: &[u32]) {
        let mut at = 0;
        for (range, room) in room[..self.ranges].iter().enumerate() {
            self.starts[range] = at;
            self.next[range][0] = at;
            at += room;
        }
        self.starts[self.ranges] = at;
    }

    /// Adds entries with these places, whose range is `single` if they have only one. `beside` gives
    /// their data.
    ///
    /// # Safety
    /// The next items of each range can be written to `to`.
    #[inline(always)]
    unsafe fn put(
        &mut self,
        to: *mut Item<P>,
        map: &Map,
        single: Option<usize>,
        places: &[u32],
        beside: impl Fn(usize) -> P,
    ) {
        if let Some(range) = single {
            let [slot, first] = &mut self.next[range];
            for (k, &place) in places.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { Item::new(place - *first, beside(k)).write(to.add(*slot as usize + k)) };
            }
            *slot += places.len() as u32;
            return;
        }
        // SAFETY: the caller's promise.
        unsafe {
            match map.splits() {
                true => self.put_each::<true>(to, map, places, beside),
                false => self.put_each::<false>(to, map, places, beside),
            }
        }
    }

    /// [`Stage::put`] for entries of several ranges.
    ///
    /// # Safety
    /// As for [`Stage::put`].
    #[inline(always)]
    unsafe fn put_each<const SPLITS: bool>(
        &mut self,
        to: *mut Item<P>,
        map: &Map,
        places: &[u32],
        beside: impl Fn(usize) -> P,
    ) {
        for (k, &place) in places.iter().enumerate() {
            let [slot, first] = &mut self.next[map.range::<SPLITS>(place)];
            // SAFETY: the caller's promise.
            unsafe { Item::new(place - *first, beside(k)).write(to.add(*slot as usize)) };
            *slot += 1;
        }
    }

    /// Returns whether no range has got more items than it has room for.
    fn fits(&self) -> bool {
        (0..self.ranges).all(|range| self.next[range][0] <= self.starts[range + 1])
    }

    fn items(&self, range: usize) -> &[Item<P>] {
        let (start, end) = (self.starts[range] as usize, self.next[range][0] as usize);
        let words = &self.items[start * Partition::<P>::WORDS..end * Partition::<P>::WORDS];
        // SAFETY: an item consists of this many words, needs no larger alignment, and is valid with
        // any bits.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), end - start) }
    }
}

/// Counts the places of each range.
fn count<const SPLITS: bool>(map: &Map, places: &[u32], counts: &mut [u32; MOST_RANGES]) {
    places.iter().for_each(|&place| counts[map.range::<SPLITS>(place)] += 1);
}
