//! Lists the entries of an index that fall into a range of places, block by block.
//!
//! A place is a position on the axis of the destination. Threads own ranges of places. Each thread reads the
//! whole index and lists the entries whose places it owns, without branches that could be mispredicted. So
//! every place sees its entries in index order, with any number of threads.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::slice;

use inlay_core::DType;
use smallvec::{SmallVec, smallvec};

use super::positions::{IndexValue, Positions, from_front, is_inside};
use crate::Src;
use crate::arch::{self, IndexBlock};
use crate::number::dispatch;
use crate::once::{read_once, settle};

/// Entries that are listed at a time. The lists stay in the first-level cache, and the values of the entries
/// are still in a cache when they are used.
pub(super) const BLOCK: usize = 2048;

/// Room after the end of a list, because whole vectors are stored.
const SPARE: usize = 16;

/// The most places of a range, so that a place fits into 32 bits.
pub(super) const MOST_PLACES: usize = u32::MAX as usize;

/// Entries of a block whose places are owned: for each the place within the range, and beside it the number of
/// the entry within the block, or its value.
///
/// Only the first `len` elements are initialized. To clear the rest would take most of the time of a small
/// call.
pub(super) struct List {
    places: [MaybeUninit<u32>; BLOCK + SPARE],
    beside: [MaybeUninit<u32>; BLOCK + SPARE],
    len: usize,
    /// All entries of the block are listed by their numbers, which are those of [`NUMBERS`].
    all: bool,
}

/// The numbers of all entries of a block.
static NUMBERS: [u32; BLOCK] = {
    let mut numbers = [0; BLOCK];
    let mut k = 0;
    while k < BLOCK {
        numbers[k] = k as u32;
        k += 1;
    }
    numbers
};

impl List {
    pub(super) fn new() -> Self {
        // Constants: the compiler would copy an uninitialized value to every element.
        List {
            places: [const { MaybeUninit::uninit() }; BLOCK + SPARE],
            beside: [const { MaybeUninit::uninit() }; BLOCK + SPARE],
            len: 0,
            all: false,
        }
    }

    pub(super) fn places(&self) -> &[u32] {
        // SAFETY: the functions that set `len` have written as many.
        unsafe { slice::from_raw_parts(self.places.as_ptr().cast(), self.len) }
    }

    /// Whether all entries of the block are listed, and by their numbers.
    pub(super) fn is_all(&self) -> bool {
        self.all
    }

    /// The entries' numbers within the block, or their values.
    pub(super) fn beside(&self) -> &[u32] {
        if self.all {
            return &NUMBERS[..self.len];
        }
        // SAFETY: the functions that set `len` have written as many, unless `all` is set.
        unsafe { slice::from_raw_parts(self.beside.as_ptr().cast(), self.len) }
    }

    /// Places and entries, in index order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        let pairs = self.places().iter().zip(self.beside());
        pairs.map(|(&place, &entry)| (place as usize, entry as usize))
    }

    /// Lists which of `values` name a place of `own` on an axis of `size`, and their numbers. A negative
    /// value counts from the end. Returns whether all values are on the axis. Listed places are always
    /// below `own.len()`, and numbers below `values.len()`, whatever the values are.
    ///
    /// The rows of the entries lie at `ahead`, a stride apart, and are prefetched on the way. They are used
    /// as soon as the list is complete, and the hardware prefetcher loses track between two lists. (10M
    /// values into 1M: 0.75 of the time.)
    pub(super) fn fill(
        &mut self,
        values: Values<'_>,
        size: usize,
        own: &Range<usize>,
        ahead: (*const u8, isize),
    ) -> bool {
        if own.len() == size && self.all_places(values, size).is_some() {
            (self.len, self.all) = (values.len, true);
            return true;
        }
        // SAFETY: without words nothing is promised.
        unsafe { self.fill_by::<false>(values, size, own, ahead) }
    }

    /// [`List::fill`] with the entries' values, contiguous words, instead of their numbers. So the words are
    /// read in order, by vectors. (Sums of 10M values into 1M: 0.7 of the time.)
    ///
    /// # Safety
    /// As many words as there are values can be read.
    pub(super) unsafe fn fill_with_words(
        &mut self,
        values: Values<'_>,
        size: usize,
        own: &Range<usize>,
        words: *const u32,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            self.fill_by::<true>(values, size, own, (words.cast(), size_of::<u32>() as isize))
        }
    }

    /// Replaces the number of each entry by the number of the row that it selects.
    pub(super) fn select(&mut self, selected: &[i64]) {
        let all = std::mem::take(&mut self.all);
        for (k, beside) in self.beside[..self.len].iter_mut().enumerate() {
            // SAFETY: the first `len` were written, unless `all` was set.
            let entry = if all { k } else { unsafe { beside.assume_init() as usize } };
            beside.write(selected[entry] as u32);
        }
    }

    /// # Safety
    /// As for [`List::fill_with_words`], if `WORDS`.
    unsafe fn fill_by<const WORDS: bool>(
        &mut self,
        values: Values<'_>,
        size: usize,
        own: &Range<usize>,
        (ahead, step): (*const u8, isize),
    ) -> bool {
        assert!(values.len <= BLOCK && own.len() <= MOST_PLACES, "a block and a range");
        let block = IndexBlock {
            values: values.from,
            len: values.len,
            size,
            own: own.clone(),
            data: (ahead, step),
            next: BLOCK,
        };
        let (places, beside) = (self.places.as_mut_ptr().cast(), self.beside.as_mut_ptr().cast());
        // SAFETY: the caller's promise; both lists have room for a block and 16 more.
        unsafe {
            let listed = arch::list_owned::<WORDS>(block, places, beside);
            (self.len, self.all) = (listed.len, false);
            let outside = self.fill_plain::<WORDS>(values, listed.done, size, own, ahead.cast());
            !(listed.outside | outside)
        }
    }

    /// # Safety
    /// As for [`List::fill_by`].
    unsafe fn fill_plain<const WORDS: bool>(
        &mut self,
        values: Values<'_>,
        start: usize,
        size: usize,
        own: &Range<usize>,
        words: *const u32,
    ) -> bool {
        let (first, count) = (own.start as u64, own.len() as u64);
        let (mut len, mut bad) = (self.len, false);
        for k in start..values.len {
            let at = from_front(values.get(k), size);
            bad |= !is_inside(at, size);
            let local = (at as u64).wrapping_sub(first);
            self.places[len].write(local as u32);
            // SAFETY: the caller's promise: there is a word for each value.
            let beside = if WORDS { unsafe { words.add(k).read_unaligned() } } else { k as u32 };
            self.beside[len].write(beside);
            len += usize::from(local < count);
        }
        self.len = len;
        bad
    }

    /// The places that `values` name on an axis of `size`, if all count from the front and are on
    /// the axis. Then nothing is listed.
    pub(super) fn all_places(&mut self, values: Values<'_>, size: usize) -> Option<&[u32]> {
        assert!(values.len <= BLOCK && size <= MOST_PLACES, "a block and a range");
        self.len = 0;
        let mut bits = 0;
        for (k, place) in self.places[..values.len].iter_mut().enumerate() {
            // SAFETY: there are `values.len` values.
            let value = unsafe { values.from.add(k).read_unaligned() };
            bits |= value as u64;
            place.write(value as u32);
        }
        // Another thread may change the values: what is checked is the private copy, which is what is
        // used. A value of more than 32 bits, or a negative one, is found by the bits that the copy lacks.
        settle();
        // SAFETY: as many were written just now.
        let places = unsafe { slice::from_raw_parts(self.places.as_ptr().cast(), values.len) };
        (bits <= u64::from(u32::MAX) && all_below(places, size)).then_some(places)
    }
}

/// Whether all places are below `size`.
fn all_below(places: &[u32], size: usize) -> bool {
    const SIGN: u32 = 1 << 31;
    if size > SIGN as usize {
        return places.iter().all(|&place| (place as usize) < size);
    }
    // Out of range, either the place or its distance from the last one has the sign. A loop without
    // comparisons collects the signs, and the compiler turns it into vectors.
    let last = (size as u32).wrapping_sub(1);
    places.iter().fold(0, |signs, &place| signs | place | last.wrapping_sub(place)) < SIGN
}

/// Index values in a row. Another thread may change foreign ones, so each is loaded once, and the value
/// that was checked is the value that is used.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    from: *const i64,
    len: usize,
    lock: PhantomData<&'a [i64]>,
}

impl<'a> Values<'a> {
    pub(super) fn new(from: &'a [i64]) -> Self {
        Values { from: from.as_ptr(), len: from.len(), lock: PhantomData }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A value, loaded once: the caller may check it and use it.
    #[inline]
    pub(super) fn get(&self, k: usize) -> i64 {
        assert!(k < self.len, "inside of the block");
        // SAFETY: just checked.
        unsafe { read_once(self.from.add(k)) }
    }
}

/// An index that is read block by block: a checked private copy, or the user's memory.
#[derive(Clone, Copy)]
pub(super) enum IndexReader<'a> {
    Checked(&'a Positions),
    /// Of rank 1 at most. Values are checked as they are read.
    Raw(Src<'a>),
}

impl IndexReader<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            IndexReader::Checked(positions) => positions.values().len(),
            IndexReader::Raw(src) => src.layout().numel(),
        }
    }

    /// The ranges of entries that are read at a time.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let len = self.len();
        (0..len).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(len))
    }

    /// The values of a block, copied to `space` unless they are contiguous `i64`.
    pub(super) fn values<'s>(
        &'s self,
        block: Range<usize>,
        space: &'s mut [MaybeUninit<i64>],
    ) -> Values<'s> {
        match self {
            IndexReader::Checked(positions) => Values::new(&positions.values()[block]),
            IndexReader::Raw(src) => {
                let stride = src.layout().strides().first().copied().unwrap_or(0);
                assert!(
                    block.end <= self.len() && src.layout().rank() <= 1,
                    "inside of a 1-D index"
                );
                if src.dtype() == DType::I64 && stride == size_of::<i64>() as isize {
                    // SAFETY: the block lies inside of the index, as was just checked, whose values are
                    // contiguous.
                    let from = unsafe { src.origin().cast::<i64>().add(block.start) };
                    return Values { from, len: block.len(), lock: PhantomData };
                }
                let space = &mut space[..block.len()];
                dispatch!(integer src.dtype(), T => for (k, to) in space.iter_mut().enumerate() {
                    // SAFETY: as above, at the index's own stride.
                    to.write(unsafe {
                        let at = src.origin().offset((block.start + k) as isize * stride);
                        at.cast::<T>().read_unaligned().to_i64()
                    });
                }, else unreachable!("an index of integers"));
                // The copy is what is checked and used.
                settle();
                Values { from: space.as_ptr().cast(), len: space.len(), lock: PhantomData }
            }
        }
    }

    /// About `count` positions on an axis of `size`, evenly spaced in the index, sorted. Values out of range
    /// are left out.
    pub(super) fn sample(&self, count: usize, size: usize) -> Vec<i64> {
        let step = (self.len() / count).max(1);
        let sampled = (0..self.len()).step_by(step).take(count);
        let sampled = sampled.map(|entry| self.position(entry, size));
        let mut sampled: Vec<i64> = sampled.filter(|&at| is_inside(at, size)).collect();
        sampled.sort_unstable();
        sampled
    }

    /// The entry's value, counted from the front.
    fn position(&self, entry: usize, size: usize) -> i64 {
        let mut space = [MaybeUninit::uninit()];
        let value = match self {
            IndexReader::Checked(positions) => positions.values()[entry],
            IndexReader::Raw(_) => self.values(entry..entry + 1, &mut space).get(0),
        };
        from_front(value, size)
    }
}

/// Entries that are sampled to balance the ranges of [`shares`].
const SAMPLES: usize = 1024;

/// Ranges begin at a multiple of this many places, so that threads share neither words of bits nor cache
/// lines, even if an element is one byte.
const ALIGN: usize = 64;

/// Ranges of places. A small call has one.
pub(super) type Shares = SmallVec<[Range<usize>; 2]>;

/// Splits `0..size` into about `parts` disjoint ranges into which about equally many entries fall.
pub(super) fn shares(entries: &IndexReader<'_>, size: usize, parts: usize) -> Shares {
    if parts <= 1 && (1..=MOST_PLACES).contains(&size) {
        return smallvec![0..size];
    }
    let mut cuts = vec![];
    if parts > 1 {
        let sampled = entries.sample(SAMPLES, size);
        let quantile = |part: usize| sampled.get(part * sampled.len() / parts);
        cuts.extend(
            (1..parts).filter_map(quantile).map(|&at| (at as usize + 1).next_multiple_of(ALIGN)),
        );
    }
    cuts.extend((1..size.div_ceil(MOST_PLACES)).map(|part| part * MOST_PLACES / ALIGN * ALIGN));
    cuts.push(size);
    cuts.sort_unstable();
    cuts.dedup();
    let mut start = 0;
    let ranges = cuts.into_iter().map(|cut| {
        let cut = cut.min(size);
        std::mem::replace(&mut start, cut)..cut
    });
    ranges.filter(|range| !range.is_empty()).collect()
}
