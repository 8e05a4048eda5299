//! Splits the places of an axis into ranges that have about equally many entries of an index, and
//! finds the range of a place.

use std::ops::Range;

use super::listing::{IndexReader, bounds};

/// The most ranges. Their numbers fit into 16 bits.
pub(super) const MOST_RANGES: usize = 1024;

/// The most buckets: equally many neighbouring places. A table of this size gives the range of a
/// place, if every range consists of whole buckets.
const BUCKETS: usize = 4096;

/// The most cells: buckets, and parts of buckets that have more entries than a range should have. A
/// table of 32 KiB gives their ranges, of which few buckets take most of the entries.
const CELLS: usize = 16 << 10;

/// The most cells of a bucket, as a power of two.
const SPLIT: u32 = 10;

/// The number of entries per range that are sampled to balance the ranges.
const SAMPLES: usize = 64;

/// Ranges of places. They are in order and cover the whole axis.
pub(super) struct Ranges {
    pub(super) all: Vec<Range<usize>>,
    pub(super) map: Map,
    /// How many of the sampled entries each range has.
    sampled: Vec<u32>,
    samples: usize,
}

/// Which range a place belongs to.
pub(super) struct Map {
    /// A bucket has `1 << shift` places.
    shift: u32,
    /// A cell of a split bucket has `1 << fine` places.
    fine: u32,
    /// For each bucket its first cell and, in the upper half, the number of its last cell, counted
    /// from the first one. Without split buckets, a bucket is a cell.
    buckets: Box<[u32; BUCKETS]>,
    /// The range of each cell.
    cells: Box<[u16; CELLS]>,
    splits: bool,
}

impl Map {
    /// Returns whether buckets are split.
    pub(super) fn splits(&self) -> bool {
        self.splits
    }

    /// Returns the range of a place. Without `SPLITS`, no bucket is split, which saves a load. (A
    /// partition takes 2.3 ns per entry without, 3 ns with.)
    #[inline(always)]
    pub(super) fn range<const SPLITS: bool>(&self, place: u32) -> usize {
        let bucket = (place >> self.shift) as usize;
        // The masks change nothing. They spare the checks of bounds.
        let cell = match SPLITS {
            true => {
                let bucket = self.buckets[bucket % BUCKETS];
                ((bucket & 0xffff) + (place >> self.fine & bucket >> 16)) as usize
            }
            false => bucket,
        };
        usize::from(self.cells[cell % CELLS]) % MOST_RANGES
    }

    /// Returns the range of these places if they have only one, as in most blocks of a sorted index.
    pub(super) fn single(&self, places: &[u32]) -> Option<usize> {
        let [low, high] = bounds(places).map(|place| self.range_of(place));
        (low == high).then_some(low)
    }

    fn range_of(&self, place: u32) -> usize {
        if self.splits { self.range::<true>(place) } else { self.range::<false>(place) }
    }
}

impl Ranges {
    /// Splits an axis of `places` into about `parts` ranges that have about equally many entries. They
    /// begin at multiples of `align` places, except next to places with more entries than a range
    /// should have: those get ranges of their own.
    pub(super) fn new(index: &IndexReader<'_>, places: usize, parts: usize, align: usize) -> Self {
        let mut shift = align.next_power_of_two().ilog2();
        while (places - 1) >> shift >= BUCKETS {
            shift += 1;
        }
        let parts = parts.clamp(1, MOST_RANGES);
        // One range needs no sample.
        let sampled = index.sample(if parts > 1 { parts * SAMPLES } else { 1 }, places);
        let share = sampled.len().div_ceil(parts).max(1) as u32;
        let count = ((places - 1) >> shift) + 1;
        let mut counts = vec![0; count];
        sampled.iter().for_each(|&place| counts[(place >> shift) as usize] += 1);

        let mut map = Map {
            shift,
            fine: shift - shift.min(SPLIT),
            buckets: Box::new([0; BUCKETS]),
            cells: Box::new([0; CELLS]),
            splits: false,
        };
        let in_bucket = 1 << (shift - map.fine);
        let mut full: Vec<usize> = (0..count).filter(|&at| counts[at] > share).collect();
        full.sort_unstable_by_key(|&at| std::cmp::Reverse(counts[at]));
        full.truncate((CELLS - BUCKETS) / in_bucket);
        if parts > 1 && in_bucket > 1 && !full.is_empty() {
            map.splits = true;
            full.iter().for_each(|&at| map.buckets[at] = (in_bucket as u32 - 1) << 16);
            let mut first = 0;
            for bucket in &mut map.buckets[..count] {
                let last = *bucket >> 16;
                *bucket |= first;
                first += last + 1;
            }
            counts = vec![0; first as usize];
            for &place in &sampled {
                let bucket = map.buckets[(place >> shift) as usize];
                counts[((bucket & 0xffff) + (place >> map.fine & bucket >> 16)) as usize] += 1;
            }
        }
        let mut ranges =
            Ranges { all: vec![], map, sampled: vec![], samples: sampled.len().max(1) };
        ranges.cut(&counts, parts, places);
        ranges
    }

    /// Cuts the cells, which have this many of the sampled entries each, into at most `parts` ranges.
    fn cut(&mut self, counts: &[u32], parts: usize, places: usize) {
        let Ranges { all, map, sampled, samples } = self;
        let (mut start, mut within, mut cell) = (0, 0, 0);
        // The sampled entries before a cell, and how many shares of them are complete. The next share is
        // complete when `parts` times the entries are `due`, which spares a division for each cell.
        let (mut before, mut shares, mut due) = (0, 0, *samples);
        let buckets = ((places - 1) >> map.shift) + 1;
        for (number, bucket) in map.buckets[..buckets].iter().enumerate() {
            for part in 0..=(bucket >> 16) as usize {
                let first = (number << map.shift) + (part << map.fine);
                let count = counts[cell];
                // A range ends where it is closest to its share. A cell with more than two shares
                // begins a range and ends one. The cells after the last place of the axis are empty.
                let middle = (before + count.div_ceil(2) as usize) * parts;
                if within > 0 && shares + 1 < parts && middle >= due && first < places {
                    all.push(start..first);
                    sampled.push(within);
                    (start, within, shares) = (first, 0, (middle / *samples).min(parts - 1));
                    due = (shares + 1) * *samples;
                }
                map.cells[cell] = all.len() as u16;
                before += count as usize;
                within += count;
                cell += 1;
            }
        }
        all.push(start..places);
        sampled.push(within);
    }

    /// Returns the number of entries that a range is expected to have of `len`.
    pub(super) fn expected(&self, range: usize, len: usize) -> usize {
        (len as u64 * u64::from(self.sampled[range]) / self.samples as u64) as usize
    }

    /// Returns how many of `len` entries a range rarely exceeds: four standard deviations of the
    /// sample and of the number itself more than expected.
    pub(super) fn most(&self, range: usize, len: usize) -> usize {
        let expected = self.expected(range, len);
        let per_sample = len as f32 / self.samples as f32;
        let deviation = f32::sqrt(self.sampled[range].max(1) as f32) * per_sample;
        expected + (4.0 * (deviation + f32::sqrt(expected as f32))) as usize + 8
    }
}
