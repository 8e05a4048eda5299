//! Lists the entries of an index that name a place of a range, block by block.
//!
//! A place is a position on the axis of the destination. Each thread owns a range of places. It
//! reads the whole index and lists the entries whose places it owns, without branches that could be
//! mispredicted. So the entries of a place are always applied in index order, with any number of
//! threads.

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

/// The number of entries that are listed at a time. The lists stay in the first-level cache, and
/// the data of the entries are still in a cache when they are used.
pub(super) const BLOCK: usize = 2048;

/// The spare elements at the end of a list. They are needed because whole vectors are stored.
const SPARE: usize = 16;

/// The most places of a range, so that a place relative to its range fits into 32 bits.
pub(super) const MOST_PLACES: usize = u32::MAX as usize;

/// The entries of a block whose places a thread owns. For each entry it has the place, relative to
/// the start of the range, and beside it the number of the entry in the block, or its data word.
///
/// Only the first `len` elements are initialized. Clearing the rest would take most of the time of
/// a small call.
pub(super) struct List {
    places: [MaybeUninit<u32>; BLOCK + SPARE],
    beside: [MaybeUninit<u32>; BLOCK + SPARE],
    len: usize,
    /// Whether all entries of the block are listed. Then `beside` is not written, and [`NUMBERS`]
    /// has the numbers of the entries.
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
        // `const` blocks: otherwise the compiler would copy an uninitialized value to every
        // element.
        List {
            places: [const { MaybeUninit::uninit() }; BLOCK + SPARE],
            beside: [const { MaybeUninit::uninit() }; BLOCK + SPARE],
            len: 0,
            all: false,
        }
    }

    pub(super) fn places(&self) -> &[u32] {
        // SAFETY: `fill_by` and `fill`, which set `len`, have written as many elements.
        unsafe { slice::from_raw_parts(self.places.as_ptr().cast(), self.len) }
    }

    /// Returns whether all entries of the block are listed, with their numbers.
    pub(super) fn is_all(&self) -> bool {
        self.all
    }

    /// Returns the numbers of the entries in the block, or their data words.
    pub(super) fn beside(&self) -> &[u32] {
        if self.all {
            return &NUMBERS[..self.len];
        }
        // SAFETY: `fill_by` and `select` have written `len` elements, because `all` is not set.
        unsafe { slice::from_raw_parts(self.beside.as_ptr().cast(), self.len) }
    }

    /// Returns pairs of place and entry (or data word), in index order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        let pairs = self.places().iter().zip(self.beside());
        pairs.map(|(&place, &entry)| (place as usize, entry as usize))
    }

    /// Lists which of `values` name a place of `own` on an axis of `size`, with the numbers of
    /// their entries. A negative value counts from the end. Returns whether all values are in
    /// range. Listed places are always below `own.len()` and numbers below `values.len()`, even if
    /// another thread changes the values.
    ///
    /// `ahead` is the address of the first entry's data and the distance to the next. The data are
    /// prefetched while the list is made. They are used as soon as the list is complete, and the
    /// hardware prefetcher does not continue from one list to the next. (10M values into 1M: 0.75
    /// of the time.)
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
        // SAFETY: without `WORDS`, `fill_by` has no requirements.
        unsafe { self.fill_by::<false>(values, size, own, ahead) }
    }

    /// [`List::fill`] with the data of the entries, contiguous 32-bit words, instead of their
    /// numbers. So the words are read in order, by vector loads. (Sums of 10M values into 1M: 0.7
    /// of the time.)
    ///
    /// # Safety
    /// A word for each value can be read.
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
    pub(super) fn replace_by(&mut self, selected: &[i64]) {
        let all = std::mem::take(&mut self.all);
        for (k, beside) in self.beside[..self.len].iter_mut().enumerate() {
            // SAFETY: `fill_by` has written the first `len` elements, unless `all` was set.
            let entry = if all { k } else { unsafe { beside.assume_init() as usize } };
            beside.write(selected[entry] as u32);
        }
    }

    /// [`List::fill`], or with `WORDS` [`List::fill_with_words`].
    ///
    /// # Safety
    /// With `WORDS`, as for [`List::fill_with_words`].
    unsafe fn fill_by<const WORDS: bool>(
        &mut self,
        values: Values<'_>,
        size: usize,
        own: &Range<usize>,
        (ahead, step): (*const u8, isize),
    ) -> bool {
        assert!(values.len <= BLOCK && own.len() <= MOST_PLACES, "one block, 32-bit places");
        let block = IndexBlock {
            values: values.from,
            len: values.len,
            size,
            own: own.clone(),
            data: (ahead, step),
            next: BLOCK,
        };
        let (places, beside) = (self.places.as_mut_ptr().cast(), self.beside.as_mut_ptr().cast());
        // SAFETY: the caller's promise. A `Values` can be read, and both lists have room for a
        // block, of which there are at most `BLOCK` values as was just checked, and `SPARE` more.
        unsafe {
            let listed = arch::list_owned::<WORDS>(block, places, beside);
            (self.len, self.all) = (listed.len, false);
            let outside = self.fill_plain::<WORDS>(values, listed.done, size, own, ahead.cast());
            !(listed.outside | outside)
        }
    }

    /// Lists the entries from `start` on without vector code. Returns whether one is out of range.
    ///
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
            // SAFETY: the caller's promise: a word for each value can be read.
            let beside = if WORDS { unsafe { words.add(k).read_unaligned() } } else { k as u32 };
            self.beside[len].write(beside);
            len += usize::from(local < count);
        }
        self.len = len;
        bad
    }

    /// Returns the places that `values` name on an axis of `size`, or `None` if a value is negative
    /// or out of range. The list is empty afterwards.
    pub(super) fn all_places(&mut self, values: Values<'_>, size: usize) -> Option<&[u32]> {
        assert!(values.len <= BLOCK && size <= MOST_PLACES, "one block, 32-bit places");
        self.len = 0;
        let mut bits = 0;
        for (k, place) in self.places[..values.len].iter_mut().enumerate() {
            // SAFETY: `k` is less than `values.len`.
            let value = unsafe { values.from.add(k).read_unaligned() };
            bits |= value as u64;
            place.write(value as u32);
        }
        // Another thread may change the values, so the private copy is checked and used. The copy
        // has only the low 32 bits of each value; `bits` collects the others, so that a larger or
        // negative value is found.
        settle();
        // SAFETY: the loop above has written `values.len` places.
        let places = unsafe { slice::from_raw_parts(self.places.as_ptr().cast(), values.len) };
        (bits <= u64::from(u32::MAX) && all_below(places, size)).then_some(places)
    }
}

/// Returns whether all places are below `size`.
fn all_below(places: &[u32], size: usize) -> bool {
    const SIGN: u32 = 1 << 31;
    if size > SIGN as usize {
        return places.iter().all(|&place| (place as usize) < size);
    }
    // If a place is out of range, either it or its distance from the last place has the sign bit
    // set. So the loop only collects sign bits, without comparisons, and the compiler vectorizes
    // it.
    let last = (size as u32).wrapping_sub(1);
    places.iter().fold(0, |signs, &place| signs | place | last.wrapping_sub(place)) < SIGN
}

/// Contiguous index values. Another thread may change foreign values, so each is loaded once: the
/// value that is checked is the value that is used.
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

    /// Returns a value. It is loaded once, so the caller may check it and then use it.
    #[inline]
    pub(super) fn get(&self, k: usize) -> i64 {
        assert!(k < self.len, "inside of the block");
        // SAFETY: `k` was just checked.
        unsafe { read_once(self.from.add(k)) }
    }
}

/// An index that is read block by block: either a checked private copy, or the user's memory.
#[derive(Clone, Copy)]
pub(super) enum IndexReader<'a> {
    Checked(&'a Positions),
    /// A 0-D or 1-D index in the user's memory. Its values are checked as they are read.
    Raw(Src<'a>),
}

impl IndexReader<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            IndexReader::Checked(positions) => positions.values().len(),
            IndexReader::Raw(src) => src.layout().numel(),
        }
    }

    /// Returns the ranges of entries that are read at a time.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let len = self.len();
        (0..len).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(len))
    }

    /// Returns the values of a block. They are copied to `space` unless they are contiguous `i64`.
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
                    // SAFETY: the block lies inside of the index, as was just checked, and the
                    // values are contiguous.
                    let from = unsafe { src.origin().cast::<i64>().add(block.start) };
                    return Values { from, len: block.len(), lock: PhantomData };
                }
                let space = &mut space[..block.len()];
                dispatch!(integer src.dtype(), T => {
                    // SAFETY: the block lies inside of the index, whose values are `stride` bytes
                    // apart.
                    let value = |k: usize, stride: isize| unsafe {
                        let at = src.origin().offset((block.start + k) as isize * stride);
                        at.cast::<T>().read_unaligned().to_i64()
                    };
                    let width = size_of::<T>() as isize;
                    // The compiler can vectorize only the loop with a constant stride. (10M values
                    // into 1M by an i32 index: 0.6 of the time.)
                    match stride == width {
                        true => {
                            for (k, to) in space.iter_mut().enumerate() {
                                to.write(value(k, width));
                            }
                        }
                        false => {
                            for (k, to) in space.iter_mut().enumerate() {
                                to.write(value(k, stride));
                            }
                        }
                    }
                }, else unreachable!("an index of integers"));
                // The copy is checked and used, not the index.
                settle();
                Values { from: space.as_ptr().cast(), len: space.len(), lock: PhantomData }
            }
        }
    }

    /// Returns a sorted sample of about `count` positions on an axis of `size`, at even distances
    /// in the index. Values that are out of range are left out.
    pub(super) fn sample(&self, count: usize, size: usize) -> Vec<i64> {
        let step = (self.len() / count).max(1);
        let sampled = (0..self.len()).step_by(step).take(count);
        let sampled = sampled.map(|entry| self.position(entry, size));
        let mut sampled: Vec<i64> = sampled.filter(|&at| is_inside(at, size)).collect();
        sampled.sort_unstable();
        sampled
    }

    /// Returns the value of an entry, counted from the front. It is not checked.
    fn position(&self, entry: usize, size: usize) -> i64 {
        let mut space = [MaybeUninit::uninit()];
        let value = match self {
            IndexReader::Checked(positions) => positions.values()[entry],
            IndexReader::Raw(_) => self.values(entry..entry + 1, &mut space).get(0),
        };
        from_front(value, size)
    }
}

/// The number of entries that [`shares`] samples to balance its ranges.
const SAMPLES: usize = 1024;

/// Ranges begin at a multiple of this many places. So threads share neither words of a bitmap nor
/// cache lines, even if an element is one byte.
const ALIGN: usize = 64;

/// Ranges of places. A small call has one range.
pub(super) type Shares = SmallVec<[Range<usize>; 2]>;

/// Splits `0..size` into about `parts` disjoint ranges that have about equally many entries.
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
