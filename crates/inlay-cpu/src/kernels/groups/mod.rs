//! Groups the entries of an index by the place they name: a stable partition.
//!
//! After grouping, the entries of each place are contiguous, and places are independent of each
//! other. Each thread takes some of the places, applies the entries of a place in index order, and
//! writes each place once.

mod shared;

use std::sync::{Mutex, PoisonError};

use inlay_core::Result;

use super::numbers::Numbers;
use crate::memory::Scratch;
use crate::threads;
use crate::tuning::{DENSE, TILE};
pub(super) use shared::MERGED;

/// The average number of entries of a bucket. Few entries are sorted quickly. With more buckets,
/// many would be empty.
const IN_BUCKET: usize = 8;

/// Returns whether an index of `entries` on an axis of `places` is dense.
pub(super) fn is_dense(entries: usize, places: usize) -> bool {
    places / DENSE.get() <= entries
}

/// Returns whether each thread can note something for every place of an axis of `places`, because it
/// has as much work with its share of `entries`. (Assignments of 1M rows of 64 `f32` to 10k places with
/// 64 threads: 2.5 ms of processor time, by a partition 7.6 ms.)
pub(super) fn has_few_places(entries: usize, places: usize) -> bool {
    let notes = places.saturating_mul(threads::num_threads());
    // The notes of a thread stay in its caches.
    let near = places.saturating_mul(size_of::<u32>()) <= TILE.get();
    near && notes <= entries && entries < u32::MAX as usize && places > 0
}

/// How the entries are grouped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// A counting sort by place: one pass counts, a prefix sum gives the starts, one pass fills.
    Count,
    /// One slot per place, which holds the last entry that names the place.
    Last,
    /// The entries are sorted by place. Places that no entry names take no time.
    Sort,
}

/// Entry numbers, grouped by place.
pub(super) struct Groups {
    strategy: Strategy,
    places: usize,
    /// For each place (for Sort, each group), where its entries end in `order`. They begin where
    /// those of the previous one end.
    ends: Numbers,
    /// Entry numbers, grouped by place. For Last, one number per place: the number of the last
    /// entry plus 1, or 0 if there is none.
    order: Numbers,
    named: Named,
    groups: usize,
}

/// The place of each group.
enum Named {
    /// A number for each group. The list is empty if every place has a group.
    Groups(Numbers),
    /// A key for each entry, in the order of the groups. Its upper 32 bits are the place.
    Entries(Scratch<u64>),
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

    /// Returns the entry `k` positions after the first one. It may belong to a later group. It is
    /// used for prefetches.
    #[inline]
    pub(super) fn ahead(&self, k: usize) -> usize {
        self.order.get((self.start + k).min(self.order.len() - 1))
    }
}

impl Groups {
    /// Allocates memory to group `entries` on an axis of `places`. With `last`, only the last entry
    /// of each place is kept.
    pub(super) fn with_capacity(entries: usize, places: usize, last: bool) -> Result<Self> {
        Groups::of_numbers(entries, places, last, entries)
    }

    /// [`Groups::with_capacity`] for entries whose numbers are below `bound`.
    fn of_numbers(entries: usize, places: usize, last: bool, bound: usize) -> Result<Self> {
        let named = if is_dense(entries, places) { 0 } else { entries };
        let named = Named::Groups(Numbers::new(named, places)?);
        Groups::of_named(entries, places, last, bound, named)
    }

    /// [`Groups::of_numbers`] with memory for the places of the groups.
    fn of_named(
        entries: usize,
        places: usize,
        last: bool,
        bound: usize,
        named: Named,
    ) -> Result<Self> {
        let (strategy, ends, order) = match (is_dense(entries, places), last) {
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
            named,
            groups: 0,
        })
    }

    /// Groups the entries `0..entries` on one thread. `place` gives the place of an entry, which
    /// must be less than the number of places.
    pub(super) fn fill(&mut self, entries: usize, place: impl Fn(usize) -> usize) {
        self.fill_numbers(entries, place, |entry| entry);
    }

    /// [`Groups::fill`] that stores `number` of each entry, unless the index is sparse.
    fn fill_numbers(
        &mut self,
        entries: usize,
        place: impl Fn(usize) -> usize,
        number: impl Fn(usize) -> usize,
    ) {
        self.groups = self.places;
        match self.strategy {
            Strategy::Last => {
                (0..self.places).for_each(|at| self.order.set(at, 0));
                (0..entries).for_each(|entry| self.order.set(place(entry), number(entry) + 1));
            }
            Strategy::Count => {
                let lists = (&mut self.ends, &mut self.order);
                count_and_place(entries, self.places, lists, place, number);
            }
            Strategy::Sort => self.sort(entries, place),
        }
    }

    /// Sorts entries by place: a stable partition into buckets of neighbouring places, then a sort
    /// of each bucket. (400k entries of 4M places: 11 ms; one sort of all takes 17 ms.)
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
        let Groups { order, ends, groups, named, .. } = self;
        let bucket = |entry| place(entry) >> shift;
        count_and_place(entries, buckets, (ends, order), bucket, |entry| entry);
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
            if before.replace(place) != Some(place) {
                if let Named::Groups(named) = named {
                    named.set(*groups, place);
                }
                *groups += 1;
            }
            ends.set(*groups - 1, at + 1);
        }
    }

    /// Returns the grouped entries and the end of each group, if numbers take 32 bits. Not for
    /// Last, which has no ends.
    pub(super) fn narrow(&self) -> Option<(&[u32], &[u32])> {
        match (&self.order, &self.ends) {
            (Numbers::Narrow(order), Numbers::Narrow(ends)) => Some((order, ends)),
            _ => None,
        }
    }

    /// Returns the number of groups. Groups of a dense index may be empty.
    pub(super) fn len(&self) -> usize {
        self.groups
    }

    /// Returns whether every place has a group, which may be empty.
    pub(super) fn is_dense(&self) -> bool {
        self.strategy != Strategy::Sort
    }

    /// Returns the first group of part `part` when the groups are split into `parts`. All parts
    /// have about the same number of entries plus groups.
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

    /// Returns the number of entries of the largest group.
    pub(super) fn largest(&self) -> usize {
        match self.strategy {
            Strategy::Last => 1,
            _ => (0..self.groups).map(|group| self.members(group).len()).max().unwrap_or(0),
        }
    }

    /// Returns the groups that have more than `count` entries, in order.
    pub(super) fn larger_than(&self, count: usize) -> Vec<usize> {
        if self.strategy == Strategy::Last {
            return vec![];
        }
        let found = Mutex::new(vec![]);
        threads::split(self.groups, size_of::<u32>(), |own| {
            let larger = own.filter(|&group| self.members(group).len() > count);
            let larger: Vec<usize> = larger.collect();
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(larger);
        });
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable();
        found
    }

    /// Returns the number of entries of all groups before `group`.
    fn before(&self, group: usize) -> usize {
        match (self.strategy, group) {
            (_, 0) => 0,
            (Strategy::Last, _) => group,
            _ => self.ends.get(group - 1),
        }
    }

    /// Returns the place of a group.
    #[inline]
    pub(super) fn place(&self, group: usize) -> usize {
        match &self.named {
            _ if self.strategy != Strategy::Sort => group,
            Named::Groups(named) => named.get(group),
            Named::Entries(keys) => (keys[self.before(group)] >> 32) as usize,
        }
    }

    /// Returns the entries of a group. Not for Last.
    #[inline]
    pub(super) fn members(&self, group: usize) -> Members<'_> {
        let start = self.before(group);
        Members { order: &self.order, start, end: self.ends.get(group) }
    }

    /// Returns the last entry of a group, or `None` if the group is empty.
    #[inline]
    pub(super) fn last(&self, group: usize) -> Option<usize> {
        match self.strategy {
            Strategy::Last => self.order.get(group).checked_sub(1),
            _ => self.members(group).len().checked_sub(1).map(|k| self.members(group).get(k)),
        }
    }
}

/// A counting sort: writes the `number` of each entry, in the order of the places, to `order`, and where the
/// entries of each of the `places` end to `ends`.
fn count_and_place(
    entries: usize,
    places: usize,
    (ends, order): (&mut Numbers, &mut Numbers),
    place: impl Fn(usize) -> usize,
    number: impl Fn(usize) -> usize,
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
        order.set(slot, number(entry));
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
                let found = (0..groups.len()).map(|g| (groups.place(g), groups.members(g)));
                let found = found.filter(|(_, members)| members.len() > 0);
                let found = found.map(|(place, members)| {
                    (place, (0..members.len()).map(|k| members.get(k)).collect::<Vec<_>>())
                });
                assert_eq!(found.collect::<Vec<_>>(), all);
            }
            let mut groups = Groups::with_capacity(index.len(), places, true).expect("small");
            for _ in 0..2 {
                groups.fill(index.len(), |entry| index[entry]);
                let found = (0..groups.len()).map(|g| (groups.place(g), groups.last(g)));
                let found = found.filter_map(|(place, last)| Some((place, last?)));
                assert_eq!(found.collect::<Vec<_>>(), [(0, 3), (1, 5), (3, 4)]);
            }
        }
    }
}
