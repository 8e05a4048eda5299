//! Reads an index block by block: as places, which are checked positions that are counted from the
//! front, or as lists of the entries whose places lie in a range.

mod sampling;

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use inlay_core::DType;

use super::partition::Item;
use super::positions::{IndexValue, Positions, from_front, is_inside};
use crate::Src;
use crate::arch::{self, IndexBlock, Loop, Simd};
use crate::number::dispatch;
use crate::once::{read_once, settle};

/// The number of entries that are read at a time. Their places stay in the first-level cache, and
/// the data of the entries are still in a cache when they are used.
pub(super) const BLOCK: usize = 2048;

/// The most places of an axis that is read here, so that a place fits into 32 bits.
pub(super) const MOST_PLACES: usize = u32::MAX as usize;

/// Writes the places that `values` name on an axis of `size` to `to`. A negative value counts from
/// the end. Returns false if a value is out of range; then some of the places are not below `size`.
/// A place that was checked is the place that is used, even if another thread changes the values.
pub(super) fn read_places(values: Values<'_>, size: usize, to: &mut [u32]) -> bool {
    assert!(values.len == to.len() && size <= MOST_PLACES, "a 32-bit place for each value");
    // SAFETY: there is a value for each place, as was just checked.
    if unsafe { arch::dispatch(Narrowed { values, size, to }) } {
        return true;
    }
    let mut inside = true;
    for (k, place) in to.iter_mut().enumerate() {
        let at = from_front(values.get(k), size);
        inside &= is_inside(at, size);
        *place = at as u32;
    }
    inside
}

/// Copies values that are all in range and not negative, as a loop that is compiled per level. Returns
/// false if there are others.
struct Narrowed<'a, 'v> {
    values: Values<'v>,
    size: usize,
    to: &'a mut [u32],
}

impl Loop for Narrowed<'_, '_> {
    type Output = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self, _simd: S) -> bool {
        let Narrowed { values, size, to } = self;
        let mut bits = 0;
        for (k, place) in to.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            let value = unsafe { values.from.add(k).read_unaligned() };
            bits |= value as u64;
            *place = value as u32;
        }
        // Another thread may change the values, so the private copy is checked and used. The copy
        // has only the low 32 bits of each value; `bits` collects the others, so that a larger or
        // negative value is found.
        settle();
        bits <= u64::from(u32::MAX) && all_below(to, size)
    }
}

/// The spare elements at the end of a list. They are needed because whole vectors are stored.
const SPARE: usize = 8;

/// The entries of a block whose places lie in a range. They are listed without branches that could
/// be mispredicted.
///
/// Only the first `len` elements are initialized. Clearing the rest would take most of the time of
/// a small call.
pub(super) struct List {
    items: [MaybeUninit<Item<u32>>; BLOCK + SPARE],
    len: usize,
}

impl List {
    pub(super) fn new() -> Self {
        // A `const` block: otherwise the compiler would copy an uninitialized value to every
        // element.
        List { items: [const { MaybeUninit::uninit() }; BLOCK + SPARE], len: 0 }
    }

    /// Returns the listed entries, in index order. Places are relative to the start of the range.
    pub(super) fn items(&self) -> &[Item<u32>] {
        // SAFETY: `fill`, which sets `len`, has written as many elements.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr().cast(), self.len) }
    }

    /// Lists which of `values` name a place of `own` on an axis of `size`, with the numbers of
    /// their entries in the block, or with `WORDS` with their data. A negative value counts from
    /// the end. Returns whether all values are in range. Listed places are always below
    /// `own.len()`, and numbers below `values.len()`, even if another thread changes the values.
    ///
    /// `data` is the address of the first entry's data and the distance to the next. The data are
    /// prefetched while the list is made. They are used as soon as the list is complete, and the
    /// hardware prefetcher does not continue from one list to the next. (10M values into 1M: 0.75
    /// of the time.) With `WORDS` they are contiguous 32-bit words, which are read in order, by
    /// vector loads. (Sums of 10M values into 1M: 0.7 of the time.)
    ///
    /// # Safety
    /// With `WORDS`, a word for each value can be read.
    pub(super) unsafe fn fill<const WORDS: bool>(
        &mut self,
        values: Values<'_>,
        size: usize,
        own: &Range<usize>,
        data: (*const u8, isize),
    ) -> bool {
        assert!(values.len <= BLOCK && own.len() <= MOST_PLACES, "one block, 32-bit places");
        let (from, len, next) = (values.from, values.len, BLOCK);
        let block = IndexBlock { values: from, len, size, own: own.clone(), data, next };
        // SAFETY: the caller's promise. A `Values` can be read. The list has room for a block, of
        // which there are at most `BLOCK` values as was just checked, and `SPARE` more. An item is
        // two words.
        let listed = unsafe { arch::list_owned::<WORDS>(block, self.items.as_mut_ptr().cast()) };
        let (first, count) = (own.start as u64, own.len() as u64);
        let (mut len, mut inside) = (listed.len, !listed.outside);
        for k in listed.done..values.len {
            let at = from_front(values.get(k), size);
            inside &= is_inside(at, size);
            let local = (at as u64).wrapping_sub(first);
            // SAFETY: the caller's promise: a word for each value can be read.
            let word = || unsafe { data.0.cast::<u32>().add(k).read_unaligned() };
            let beside = if WORDS { word() } else { k as u32 };
            self.items[len].write(Item { place: local as u32, beside });
            len += usize::from(local < count);
        }
        self.len = len;
        inside
    }

    /// Replaces the number of each entry by the number of the row that it selects.
    pub(super) fn replace_by(&mut self, selected: &[i64]) {
        for item in &mut self.items[..self.len] {
            // SAFETY: `fill` has written the first `len` elements.
            let Item { place, beside } = unsafe { item.assume_init() };
            item.write(Item { place, beside: selected[beside as usize] as u32 });
        }
    }
}

/// Splits a range of entries into those that are read at a time.
pub(super) fn blocks(entries: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let Range { start, end } = entries;
    (start..end).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(end))
}

/// Finds the lowest and the highest of some places, as a loop that is compiled per level.
struct Bounds<'a>(&'a [u32]);

impl Loop for Bounds<'_> {
    type Output = [u32; 2];

    #[inline(always)]
    unsafe fn run<S: Simd>(self, _simd: S) -> [u32; 2] {
        let (vectors, rest) = self.0.as_chunks::<16>();
        let (mut low, mut high) = ([u32::MAX; 16], [0; 16]);
        for vector in vectors {
            for lane in 0..16 {
                low[lane] = low[lane].min(vector[lane]);
                high[lane] = high[lane].max(vector[lane]);
            }
        }
        let low = low.iter().chain(rest).fold(u32::MAX, |low, &place| low.min(place));
        [low, high.iter().chain(rest).fold(0, |high, &place| high.max(place))]
    }
}

/// Returns the lowest and the highest of some places.
pub(super) fn bounds(places: &[u32]) -> [u32; 2] {
    // SAFETY: the loop has no requirements.
    unsafe { arch::dispatch(Bounds(places)) }
}

/// Returns whether all places are below `size`.
#[inline(always)]
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

/// The number of pairs that are compared to find out whether places are repeated.
const SAMPLED: usize = 64;

/// How many of 16 places are those of the entry before, at least: in an index with some repeated places,
/// and in one with runs of equal places.
#[derive(Clone, Copy)]
pub(super) enum Repeated {
    /// As in a sorted index with two entries a place.
    Some = 4,
    /// As in a sorted index with six entries a place. The end of a run is a branch that is predicted wrong
    /// if runs are short. (10M values into 10k, half of them into the place before, on one thread: 9.0 ms by
    /// a loop without that branch, 39 ms by runs. By an index that is sorted, 28 ms and 9.5 ms.)
    Most = 13,
}

/// Returns whether places are repeated as often as `often` says, as far as a sample of `len` places tells.
#[inline]
pub(super) fn repeats<T: PartialEq>(
    often: Repeated,
    len: usize,
    place: impl Fn(usize) -> T,
) -> bool {
    let pairs = (1..len).step_by((len / SAMPLED).max(1));
    let sampled = pairs.len();
    16 * pairs.filter(|&k| place(k - 1) == place(k)).count() > often as usize * sampled
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
    fn new(from: &'a [i64]) -> Self {
        Values { from: from.as_ptr(), len: from.len(), lock: PhantomData }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether values are equal to the one before as often as `often` says, as far as the first
    /// of them tell. Samples of the whole block would not be in a cache yet.
    pub(super) fn repeat(&self, often: Repeated) -> bool {
        repeats(often, self.len.min(SAMPLED + 1), |k| self.get(k))
    }

    /// Returns the place that a value names on an axis of `size`, or `None` if it is out of range. Loops
    /// call it, and don't pass a closure, because the compiler may call a long closure instead of
    /// inlining it.
    #[inline(always)]
    pub(super) fn place(&self, k: usize, size: usize) -> Option<usize> {
        let mut at = self.get(k);
        if !is_inside(at, size) {
            at = from_front(at, size);
            if !is_inside(at, size) {
                return None;
            }
        }
        Some(at as usize)
    }

    /// Returns a value, or the last one if there are fewer, for a prefetch. There must be one.
    #[inline(always)]
    pub(super) fn ahead(&self, k: usize) -> i64 {
        self.get(k.min(self.len.wrapping_sub(1)))
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
        blocks(0..self.len())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares lists with a filter: lengths that are whole vectors or not, values that count from
    /// the front or from the end, in range or not, and lists of entry numbers or of words.
    #[test]
    fn lists_are_filters() {
        let (size, own) = (100, 30..75);
        for len in [0, 7, 8, 9, 63, 500] {
            for wrong in [None, Some(-101), Some(100), Some(i64::MIN), Some(i64::MAX)] {
                let mut values: Vec<i64> = (0..len).map(|k| (k * 37 + k / 5) % 200 - 100).collect();
                let is_wrong = wrong.filter(|_| len > 3).map(|wrong| values[3] = wrong).is_some();
                let at = |value: i64| if value < 0 { value.wrapping_add(size) } else { value };
                let places = values.iter().map(|&value| at(value)).enumerate();
                let owned = places.filter(|(_, at)| own.contains(at));
                let owned: Vec<(u32, u32)> =
                    owned.map(|(k, at)| (at as u32 - 30, k as u32)).collect();
                let words: Vec<u32> = (0..len as u32).map(|k| k * 8_000_001).collect();
                let (block, own) = (Values::new(&values), own.start as usize..own.end as usize);
                let listed = |list: &List| -> Vec<(u32, u32)> {
                    list.items().iter().map(|item| (item.place, item.beside)).collect()
                };
                let mut list = List::new();
                // SAFETY: `words` has one word for each value.
                unsafe {
                    let inside = list.fill::<false>(block, 100, &own, (std::ptr::null(), 0));
                    assert_eq!((inside, listed(&list)), (!is_wrong, owned.clone()));
                    let inside = list.fill::<true>(block, 100, &own, (words.as_ptr().cast(), 4));
                    let owned = owned.iter().map(|&(place, k)| (place, words[k as usize]));
                    assert_eq!((inside, listed(&list)), (!is_wrong, owned.collect()));
                }
            }
        }
    }

    /// Lengths that are whole vectors or not, and values that count from the front or from the end,
    /// in range or not.
    #[test]
    fn places_are_values_counted_from_the_front() {
        let size = 100;
        for len in [0, 7, 8, 9, 63, 500] {
            for from_end in [false, true] {
                for wrong in [None, Some(-101), Some(100), Some(i64::MIN), Some(i64::MAX)] {
                    let value = |k: i64| (k * 37 + k / 5) % size - if from_end { size } else { 0 };
                    let mut values: Vec<i64> = (0..len).map(value).collect();
                    let wrong = wrong.filter(|_| len > 3).map(|wrong| values[3] = wrong).is_some();
                    let mut places = vec![0; values.len()];
                    let inside = read_places(Values::new(&values), size as usize, &mut places);
                    assert_eq!(inside, !wrong);
                    if !wrong {
                        let expected = (0..len).map(|k| (value(k) + size) as u32 % size as u32);
                        assert_eq!(places, expected.collect::<Vec<_>>());
                    }
                }
            }
        }
    }
}
