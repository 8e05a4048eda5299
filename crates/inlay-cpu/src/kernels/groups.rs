//! Groups the entries of an index by the place they name: a stable partition.
//!
//! When the entries of each place are contiguous, places are independent. Threads take places, every place
//! sees its updates in index order, and each place is written once.

use std::mem::MaybeUninit;
use std::ops::Range;

use inlay_core::Result;

use super::listing::{BLOCK, IndexReader, List, shares};
use super::numbers::Numbers;
use super::positions::{Positions, Shared};
use crate::threads;
use crate::tuning::DENSE;

/// Average entries of a bucket. Few entries are sorted quickly; with more buckets, many would be empty.
const IN_BUCKET: usize = 8;

/// Whether so many entries on so many places are dense.
pub(super) fn is_dense(entries: usize, places: usize) -> bool {
    places / DENSE.get() <= entries
}

/// How the entries are grouped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// A counting sort by place: one pass counts, a prefix sum gives the starts, one pass fills.
    Count,
    /// One slot per place, which keeps the last entry.
    Last,
    /// Entries are sorted by place. Places that no entry names cost nothing.
    Sort,
}

/// Entry numbers, grouped by place.
pub(super) struct Groups {
    strategy: Strategy,
    places: usize,
    /// Where the entries of each place (for Sort, of each group) end. They begin where those of the place
    /// before end.
    ends: Numbers,
    /// Entry numbers. For Last, one number per place: the entry plus 1, or 0 for none.
    order: Numbers,
    groups: usize,
}

/// The entries of one place, in index order.
#[derive(Clone, Copy)]
pub(super) struct Members<'a> {
    order: &'a Numbers,
    start: usize,
    end: usize,
}

impl Members<'_> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    #[inline]
    pub(super) fn get(&self, k: usize) -> usize {
        self.order.get(self.start + k)
    }

    /// The entry `k` positions after the first, which may belong to a later group; for prefetches.
    #[inline]
    pub(super) fn ahead(&self, k: usize) -> usize {
        self.order.get((self.start + k).min(self.order.len() - 1))
    }
}

impl Groups {
    /// Workspace for `entries` that name `places`; `last` when only the last of each counts.
    pub(super) fn with_capacity(entries: usize, places: usize, last: bool) -> Result<Self> {
        Groups::of_numbers(entries, places, last, entries)
    }

    /// The same for entries that have numbers below `bound`.
    pub(super) fn of_numbers(
        entries: usize,
        places: usize,
        last: bool,
        bound: usize,
    ) -> Result<Self> {
        let dense = is_dense(entries, places);
        let (strategy, ends, order) = match (dense, last) {
            (true, true) => (Strategy::Last, 0, places),
            (true, false) => (Strategy::Count, places, entries),
            (false, _) => (Strategy::Sort, entries, entries),
        };
        let bound = bound.max(entries).saturating_add(1);
        Ok(Groups {
            strategy,
            places,
            ends: Numbers::new(ends, bound)?,
            order: Numbers::new(order, bound)?,
            groups: 0,
        })
    }

    /// Groups the entries of an index, all of which are in `0..places`. Several threads share the work;
    /// each owns a range of places. For a dense index, `number` gives the number that stands for an entry.
    pub(super) fn fill_from(&mut self, index: &Positions, number: impl Fn(usize) -> usize + Sync) {
        index.expect_within(self.places);
        let values = index.values();
        if self.strategy == Strategy::Sort {
            return self.fill(values.len(), |entry| values[entry] as usize);
        }
        let entries = IndexReader::Checked(index);
        let parts = threads::parts(values.len(), 4 * size_of::<i64>()).min(threads::num_threads());
        let ranges = shares(&entries, self.places, parts);
        let (order, ends) = (self.order.shared(), self.ends.shared());
        let places = self.places;
        self.groups = self.places;
        if self.strategy == Strategy::Last {
            return threads::run(ranges.len(), |part| {
                // SAFETY: the places of a range are this call's alone.
                unsafe {
                    ranges[part].clone().for_each(|place| order.set(place, 0));
                    each_owned(&entries, places, &ranges[part], |place, entry| {
                        order.set(place, number(entry) + 1);
                    });
                }
            });
        }
        let mut totals = vec![0; ranges.len()];
        let shared = Shared(totals.as_mut_ptr());
        threads::run(ranges.len(), |part| {
            let mut total = 0;
            // SAFETY: as above, and each part has its own total.
            unsafe {
                ranges[part].clone().for_each(|place| ends.set(place, 0));
                each_owned(&entries, places, &ranges[part], |place, _| {
                    ends.update(place, |count| count + 1);
                    total += 1;
                });
                shared.get().add(part).write(total);
            }
        });
        threads::run(ranges.len(), |part| {
            let mut next: usize = totals[..part].iter().sum();
            // SAFETY: as above; the slots of a place are those of its entries, which are this
            // call's alone.
            unsafe {
                for place in ranges[part].clone() {
                    // The prefix sum turns counts into starts. Filling turns starts into ends.
                    next += ends.update(place, |_| next);
                }
                each_owned(&entries, places, &ranges[part], |place, entry| {
                    order.set(ends.update(place, |slot| slot + 1), number(entry));
                });
            }
        });
    }

    /// Groups `entries` whose places `place` tells; each is less than the number of places.
    pub(super) fn fill(&mut self, entries: usize, place: impl Fn(usize) -> usize) {
        self.groups = self.places;
        match self.strategy {
            Strategy::Last => {
                (0..self.places).for_each(|at| self.order.set(at, 0));
                (0..entries).for_each(|entry| self.order.set(place(entry), entry + 1));
            }
            Strategy::Count => {
                count_and_place(entries, self.places, (&mut self.ends, &mut self.order), place);
            }
            Strategy::Sort => self.sort(entries, place),
        }
    }

    /// Sorts entries by place: a stable partition into buckets of neighbouring places, then a sort of each
    /// bucket. (400k entries of 4M places: 11 ms; one sort of all takes 17 ms.)
    fn sort(&mut self, entries: usize, place: impl Fn(usize) -> usize) {
        if entries == 0 {
            self.groups = 0;
            return;
        }
        let buckets = (entries / IN_BUCKET).max(1);
        let mut shift = 0;
        while self.places.saturating_sub(1) >> shift >= buckets {
            shift += 1;
        }
        let Groups { order, ends, groups, .. } = self;
        count_and_place(entries, buckets, (ends, order), |entry| place(entry) >> shift);
        let mut start = 0;
        for bucket in 0..buckets {
            let end = ends.get(bucket);
            match order {
                Numbers::Narrow(order) => {
                    order[start..end].sort_unstable_by_key(|&entry| (place(entry as usize), entry));
                }
                Numbers::Wide(order) => {
                    order[start..end].sort_unstable_by_key(|&entry| (place(entry as usize), entry));
                }
            }
            start = end;
        }
        *groups = 0;
        let mut before = None;
        for at in 0..entries {
            let place = place(order.get(at));
            *groups += usize::from(before.replace(place) != Some(place));
            ends.set(*groups - 1, at + 1);
        }
    }

    /// The grouped entries and the end of each group, if they are numbered in 32 bits. Not for Last.
    pub(super) fn narrow(&self) -> Option<(&[u32], &[u32])> {
        match (&self.order, &self.ends) {
            (Numbers::Narrow(order), Numbers::Narrow(ends)) => Some((order, ends)),
            _ => None,
        }
    }

    /// The number of groups. Groups of a dense index may be empty.
    pub(super) fn len(&self) -> usize {
        self.groups
    }

    /// Whether every place has a group.
    pub(super) fn is_dense(&self) -> bool {
        self.strategy != Strategy::Sort
    }

    /// The first group of part `part` of `parts`. Parts have about equally many entries and places.
    pub(super) fn cut(&self, part: usize, parts: usize) -> usize {
        let weight = |group: usize| self.before(group) + group;
        if part == parts {
            return self.groups;
        }
        let wanted = (weight(self.groups) as u128 * part as u128 / parts as u128) as usize;
        let (mut low, mut high) = (0, self.groups);
        while low < high {
            let middle = low.midpoint(high);
            if weight(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// How many entries the largest group has.
    pub(super) fn largest(&self) -> usize {
        match self.strategy {
            Strategy::Last => 1,
            _ => (0..self.groups).map(|group| self.members(group).len()).max().unwrap_or(0),
        }
    }

    /// How many entries the groups before `group` have.
    fn before(&self, group: usize) -> usize {
        match (self.strategy, group) {
            (_, 0) => 0,
            (Strategy::Last, _) => group,
            _ => self.ends.get(group - 1),
        }
    }

    /// The place of a group, where `place` tells that of an entry, as it did for
    /// [`Groups::fill`].
    #[inline]
    pub(super) fn place(&self, group: usize, place: impl Fn(usize) -> usize) -> usize {
        if self.strategy == Strategy::Sort { place(self.members(group).get(0)) } else { group }
    }

    /// The entries of a group; not for a workspace of last ones.
    #[inline]
    pub(super) fn members(&self, group: usize) -> Members<'_> {
        let start = self.before(group);
        Members { order: &self.order, start, end: self.ends.get(group) }
    }

    /// The last entry of a group, if it has one.
    #[inline]
    pub(super) fn last(&self, group: usize) -> Option<usize> {
        match self.strategy {
            Strategy::Last => self.order.get(group).checked_sub(1),
            _ => self.members(group).len().checked_sub(1).map(|k| self.members(group).get(k)),
        }
    }
}

/// Puts entries in the order of their places, of which there are `places`, and tells where each place's
/// end.
fn count_and_place(
    entries: usize,
    places: usize,
    (ends, order): (&mut Numbers, &mut Numbers),
    place: impl Fn(usize) -> usize,
) {
    (0..places).for_each(|at| ends.set(at, 0));
    for entry in 0..entries {
        let at = place(entry);
        ends.set(at, ends.get(at) + 1);
    }
    let mut next = 0;
    for at in 0..places {
        let count = ends.get(at);
        ends.set(at, next);
        next += count;
    }
    for entry in 0..entries {
        let at = place(entry);
        let slot = ends.get(at);
        ends.set(at, slot + 1);
        order.set(slot, entry);
    }
}

/// Calls `visit` with place and number of every entry that falls into `own`, in index order.
fn each_owned(
    entries: &IndexReader<'_>,
    places: usize,
    own: &Range<usize>,
    mut visit: impl FnMut(usize, usize),
) {
    let (mut list, mut space) = (List::new(), [MaybeUninit::uninit(); BLOCK]);
    for block in entries.blocks() {
        let nothing = (std::ptr::null(), 0);
        let inside = list.fill(entries.values(block.clone(), &mut space), places, own, nothing);
        assert!(inside, "positions were checked");
        list.iter().for_each(|(place, k)| visit(own.start + place, block.start + k));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_keeps_index_order() {
        let index = [3usize, 1, 3, 0, 3, 1];
        for places in [4, 8 * index.len() + 8] {
            let all = [(0, vec![3]), (1, vec![1, 5]), (3, vec![0, 2, 4])];
            let mut groups = Groups::with_capacity(index.len(), places, false).expect("small");
            for _ in 0..2 {
                groups.fill(index.len(), |entry| index[entry]);
                let found = (0..groups.len())
                    .map(|g| (groups.place(g, |entry| index[entry]), groups.members(g)));
                let found = found.filter(|(_, members)| members.len() > 0);
                let found = found.map(|(place, members)| {
                    (place, (0..members.len()).map(|k| members.get(k)).collect::<Vec<_>>())
                });
                assert_eq!(found.collect::<Vec<_>>(), all);
            }
            let mut groups = Groups::with_capacity(index.len(), places, true).expect("small");
            for _ in 0..2 {
                groups.fill(index.len(), |entry| index[entry]);
                let found = (0..groups.len())
                    .map(|g| (groups.place(g, |entry| index[entry]), groups.last(g)));
                let found = found.filter_map(|(place, last)| Some((place, last?)));
                assert_eq!(found.collect::<Vec<_>>(), [(0, 3), (1, 5), (3, 4)]);
            }
        }
    }
}
