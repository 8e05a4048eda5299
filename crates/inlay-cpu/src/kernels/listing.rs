//! Which entries of an index fall into a range of places, block by block.
//!
//! Threads own ranges of places. Each reads the whole index and lists what it owns, without a
//! branch that could be mispredicted; so every place sees its entries in index order, whatever the
//! number of threads.

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

/// Entries that are listed at a time: the lists stay in the first cache, and the entries' values
/// are still in a cache when they are used.
pub(super) const BLOCK: usize = 2048;

/// Lists are written whole vectors at a time, past their end.
const SPARE: usize = 16;

/// Places of one range, so that a place fits in 32 bits.
pub(super) const MOST_PLACES: usize = u32::MAX as usize;

/// Entries of an index whose places are owned: the place within the range, and the entry within
/// the block or what it stands for.
///
/// Only what is listed was written: clearing the rest would cost a small call more than all else.
pub(super) struct List {
    places: [MaybeUninit<u32>; BLOCK + SPARE],
    beside: [MaybeUninit<u32>; BLOCK + SPARE],
    len: usize,
    /// All entries of the block are listed, whose numbers nobody has to write.
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
        // Constants: a value that is copied to all places is written to them, initialized or not.
        List {
            places: [const { MaybeUninit::uninit() }; BLOCK + SPARE],
            beside: [const { MaybeUninit::uninit() }; BLOCK + SPARE],
            len: 0,
            all: false,
        }
    }

    pub(super) fn places(&self) -> &[u32] {
        // SAFETY: the first `len` were written.
        unsafe { slice::from_raw_parts(self.places.as_ptr().cast(), self.len) }
    }

    /// Whether all entries of the block are listed, and by their numbers.
    pub(super) fn is_all(&self) -> bool {
        self.all
    }

    /// The entries' numbers within the block, or what they stand for.
    pub(super) fn beside(&self) -> &[u32] {
        if self.all {
            return &NUMBERS[..self.len];
        }
        // SAFETY: the first `len` were written.
        unsafe { slice::from_raw_parts(self.beside.as_ptr().cast(), self.len) }
    }

    /// Places and entries, in index order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        let pairs = self.places().iter().zip(self.beside());
        pairs.map(|(&place, &entry)| (place as usize, entry as usize))
    }

    /// Lists which of `values` name a place of `own` on an axis of `size`, and their numbers; a
    /// negative one counts from the end. Tells whether all of them are on the axis.
    ///
    /// What the entries stand for lies at `ahead` and is asked for on the way: it is used as soon as
    /// the list is done, and lists come with pauses in which the CPU forgets where it was. (10M
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
        // SAFETY: there are no words.
        unsafe { self.fill_by::<false>(values, size, own, ahead) }
    }

    /// The same with what the entries stand for, words in a row, instead of their numbers: so they are
    /// read in order, vectors at a time. (Sums of 10M values into 1M: 0.7 of the time.)
    ///
    /// # Safety
    /// There are as many words as values.
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

    /// Replaces the numbers of entries by what they select, which are numbers as well.
    pub(super) fn select(&mut self, selected: &[i64]) {
        let all = std::mem::take(&mut self.all);
        for (k, beside) in self.beside[..self.len].iter_mut().enumerate() {
            // SAFETY: as many were written, unless all entries are listed.
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
            // SAFETY: the caller's promise.
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
        let last = size as i64 - 1;
        // Out of range, one of the two has the sign: so it is found by vectors.
        let mut signs = 0;
        for (k, place) in self.places[..values.len].iter_mut().enumerate() {
            let value = values.get(k);
            signs |= value | last.wrapping_sub(value);
            place.write(value as u32);
        }
        // SAFETY: as many were written just now.
        let places = unsafe { slice::from_raw_parts(self.places.as_ptr().cast(), values.len) };
        (signs >= 0).then_some(places)
    }
}

/// Index values in a row. Another thread may change foreign ones, so each is read once and used
/// as it was read.
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

    #[inline]
    pub(super) fn get(&self, k: usize) -> i64 {
        assert!(k < self.len, "inside of the block");
        // SAFETY: just checked.
        unsafe { self.from.add(k).read_unaligned() }
    }
}

/// An index to be read block by block: checked and copied before, or as it lies.
#[derive(Clone, Copy)]
pub(super) enum Entries<'a> {
    Checked(&'a Positions),
    /// 1-D; its values are checked as they are read.
    Raw(Src<'a>),
}

impl Entries<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Entries::Checked(positions) => positions.values().len(),
            Entries::Raw(src) => src.layout().numel(),
        }
    }

    /// The ranges of entries that are read at a time.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let len = self.len();
        (0..len).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(len))
    }

    /// The values of a block, copied to `space` unless they lie in a row as they are.
    pub(super) fn values<'s>(
        &'s self,
        block: Range<usize>,
        space: &'s mut [MaybeUninit<i64>],
    ) -> Values<'s> {
        match self {
            Entries::Checked(positions) => Values::new(&positions.values()[block]),
            Entries::Raw(src) => {
                let stride = src.layout().strides().first().copied().unwrap_or(0);
                assert!(
                    block.end <= self.len() && src.layout().rank() <= 1,
                    "inside of a 1-D index"
                );
                if src.dtype() == DType::I64 && stride == size_of::<i64>() as isize {
                    // SAFETY: the block lies inside of the index, whose values follow each other.
                    let from = unsafe { src.origin().cast::<i64>().add(block.start) };
                    return Values { from, len: block.len(), lock: PhantomData };
                }
                let space = &mut space[..block.len()];
                dispatch!(integer src.dtype(), T => for (k, to) in space.iter_mut().enumerate() {
                    // SAFETY: as above.
                    to.write(unsafe {
                        let at = src.origin().offset((block.start + k) as isize * stride);
                        at.cast::<T>().read_unaligned().to_i64()
                    });
                }, else unreachable!("an index of integers"));
                Values { from: space.as_ptr().cast(), len: space.len(), lock: PhantomData }
            }
        }
    }

    /// About `count` positions on an axis of `size`, from all over the index, in order; those that are
    /// out of range are left out.
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
            Entries::Checked(positions) => positions.values()[entry],
            Entries::Raw(_) => self.values(entry..entry + 1, &mut space).get(0),
        };
        from_front(value, size)
    }
}

/// Entries whose places are looked at to balance the ranges of [`shares`].
const SAMPLES: usize = 1024;

/// Ranges begin at a multiple of this many places: words of bits and lines of the cache are not
/// shared, for the smallest elements too.
const ALIGN: usize = 64;

/// Ranges of places; a small call has one.
pub(super) type Shares = SmallVec<[Range<usize>; 2]>;

/// Splits `0..size` into ranges, about `parts` of them, that about equally many entries fall into.
pub(super) fn shares(entries: &Entries<'_>, size: usize, parts: usize) -> Shares {
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
