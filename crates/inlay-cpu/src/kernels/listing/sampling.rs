//! Samples of an index, and the slices of a sorted one.

use std::ops::Range;

use super::IndexReader;
use crate::kernels::positions::{Shared, is_inside};
use crate::threads::{self, part_of};

/// The number of entries by which an index is judged sorted. Each is a cache miss of the calling
/// thread.
const SORTED_SAMPLES: usize = 64;

/// The number of slices whose starts are worth a thread.
const IN_SLICES: usize = 16;

/// The number of samples that are worth a thread.
const IN_PART: usize = 256;

impl IndexReader<'_> {
    /// Returns the places of up to `count` entries on an axis of `size`, at even distances in the
    /// index. Values that are out of range are left out. Threads share many samples, because each of
    /// them is a cache miss.
    pub(in crate::kernels) fn sample(&self, count: usize, size: usize) -> Vec<u32> {
        const OUTSIDE: u32 = u32::MAX;
        let step = (self.len() / count).max(1);
        let mut sampled = vec![OUTSIDE; self.len().div_ceil(step).min(count)];
        let (to, len) = (Shared(sampled.as_mut_ptr()), sampled.len());
        let parts = (len / IN_PART).clamp(1, threads::num_threads());
        let work = |part: usize| {
            for sample in part_of(len, parts, part) {
                let at = self.position(sample * step, size);
                let place = if is_inside(at, size) { at as u32 } else { OUTSIDE };
                // SAFETY: the sample is below `len`, and no other thread has it.
                unsafe { to.get().add(sample).write(place) };
            }
        };
        if parts == 1 {
            work(0)
        } else {
            threads::run(parts, work)
        }
        // A place is below the largest size, so it is never this number.
        sampled.retain(|&place| place != OUTSIDE);
        sampled
    }

    /// Returns whether the index is sorted, as far as a sample tells.
    pub(in crate::kernels) fn is_sorted(&self, size: usize) -> bool {
        let samples = SORTED_SAMPLES.min(self.len());
        let sampled = (0..samples).map(|sample| part_of(self.len(), samples, sample).start);
        let mut last = 0;
        sampled
            .map(|entry| self.position(entry, size))
            .all(|at| is_inside(at, size) && at >= std::mem::replace(&mut last, at))
    }

    /// Cuts an index that is sorted, as far as a sample tells, into at most `parts` slices: returns
    /// the first entry of each slice and its place on an axis of `size`. With `apart`, a slice
    /// begins with the first entry of a place. Returns `None` if the index is not sorted.
    pub(in crate::kernels) fn slices(
        &self,
        parts: usize,
        size: usize,
        apart: bool,
    ) -> Option<Vec<(usize, usize)>> {
        let inside = |entry: usize| {
            let at = self.position(entry, size);
            is_inside(at, size).then_some(at as usize)
        };
        if !self.is_sorted(size) {
            return None;
        }
        let last = part_of(self.len(), parts, parts - 1).start;
        if apart && inside(last)? == inside(0)? {
            return Some(vec![(0, 0)]);
        }
        // With `apart`, a part that begins in the place of the part before has no slice.
        let cut = |part: usize| {
            let [before, mut entry] =
                [part - 1, part].map(|at| part_of(self.len(), parts, at).start);
            let place = inside(entry)?;
            if apart {
                if inside(before)? >= place {
                    return Some((0, 0));
                }
                // The first entry of a place is searched in steps that double, because it is often
                // near.
                let (mut low, mut step) = (entry, 1);
                while low > before + 1 && inside(low - 1)? >= place {
                    entry = low - 1;
                    low = low.saturating_sub(step).max(before + 1);
                    step *= 2;
                }
                while low < entry {
                    let middle = low.midpoint(entry);
                    if inside(middle)? < place { low = middle + 1 } else { entry = middle }
                }
            }
            Some((entry, place))
        };
        let mut cuts = vec![None; parts];
        let to = Shared(cuts.as_mut_ptr());
        let shares = (parts / IN_SLICES).clamp(1, threads::num_threads());
        let work = |share: usize| {
            for part in part_of(parts, shares, share) {
                let found = if part == 0 { Some((0, 0)) } else { cut(part) };
                // SAFETY: there is an element for each part, and no other thread has it.
                unsafe { to.get().add(part).write(found) };
            }
        };
        if shares == 1 {
            work(0)
        } else {
            threads::run(shares, work)
        }
        let mut slices: Vec<(usize, usize)> = vec![];
        for cut in cuts {
            let (entry, place) = cut?;
            // An index that only seems to be sorted may have cuts in any order.
            if slices.last().is_none_or(|before| entry > before.0 && place >= before.1) {
                slices.push((entry, place));
            }
        }
        Some(slices)
    }

    /// Returns where the entries of a sorted index end that name `place` on an axis of `size` and are
    /// the first ones of `entries`. It is searched in steps that double, because it is often near.
    pub(in crate::kernels) fn end_of(
        &self,
        entries: Range<usize>,
        place: usize,
        size: usize,
    ) -> usize {
        let same = |entry: usize| self.position(entry, size) == place as i64;
        let Range { start: mut low, end: mut high } = entries;
        let mut step = 1;
        while low < high && same(low + (step - 1).min(high - low - 1)) {
            low += step.min(high - low);
            step *= 2;
        }
        high = high.min(low + step - 1);
        while low < high {
            let middle = low.midpoint(high);
            if same(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}
