//! Groups the entries of an index by the place they name, keeping their order.
//!
//! With the entries of each place side by side, places are independent: threads take places, every
//! place sees its updates in index order, and is written once.

use inlay_core::Result;

use crate::memory::Scratch;

/// An index is dense when it has at least one entry for so many places: counting them all then
/// costs less than sorting the entries.
const DENSE: usize = 8;

/// How the entries are brought together.
enum Strategy {
    /// One slot a place, counted and filled in two passes.
    Count,
    /// One slot a place that holds its last entry.
    Last,
    /// Entries sorted by place; places that no entry names cost nothing.
    Sort,
}

/// Entry numbers, grouped by place.
pub(super) struct Groups {
    strategy: Strategy,
    places: usize,
    /// Count: where each place's entries begin. Sort: where each group's entries begin.
    starts: Scratch<usize>,
    /// Entry numbers; for Last one a place, or `NONE`.
    order: Scratch<usize>,
    groups: usize,
    /// Sort: the place of each group.
    named: Scratch<usize>,
}

const NONE: usize = usize::MAX;

impl Groups {
    /// Workspace for `entries` that name `places`; `last` when only the last of each counts.
    pub(super) fn with_capacity(entries: usize, places: usize, last: bool) -> Result<Self> {
        let dense = places / DENSE <= entries;
        let (strategy, starts, order, named) = match (dense, last) {
            (true, true) => (Strategy::Last, 0, places, 0),
            (true, false) => (Strategy::Count, places + 1, entries, 0),
            (false, _) => (Strategy::Sort, entries + 1, entries, entries),
        };
        Ok(Groups {
            strategy,
            places,
            starts: Scratch::new(starts)?,
            order: Scratch::new(order)?,
            groups: 0,
            named: Scratch::new(named)?,
        })
    }

    /// Groups `entries` whose places `place` tells; each is less than the number of places.
    pub(super) fn fill(&mut self, entries: usize, place: impl Fn(usize) -> usize) {
        match self.strategy {
            Strategy::Last => {
                self.order.fill(NONE);
                for entry in 0..entries {
                    self.order[place(entry)] = entry;
                }
                self.groups = self.places;
            }
            Strategy::Count => {
                self.starts.fill(0);
                for entry in 0..entries {
                    self.starts[place(entry)] += 1;
                }
                // Counts become ends, and ends become starts as the entries are put in backwards.
                let mut end = 0;
                for start in self.starts.iter_mut() {
                    end += *start;
                    *start = end;
                }
                for entry in (0..entries).rev() {
                    let slot = &mut self.starts[place(entry)];
                    *slot -= 1;
                    self.order[*slot] = entry;
                }
                self.groups = self.places;
            }
            Strategy::Sort => {
                let order = &mut self.order[..entries];
                for (entry, slot) in order.iter_mut().enumerate() {
                    *slot = entry;
                }
                order.sort_unstable_by_key(|&entry| (place(entry), entry));
                self.groups = 0;
                for (at, &entry) in order.iter().enumerate() {
                    let named = place(entry);
                    if self.groups == 0 || self.named[self.groups - 1] != named {
                        self.named[self.groups] = named;
                        self.starts[self.groups] = at;
                        self.groups += 1;
                    }
                }
                self.starts[self.groups] = entries;
            }
        }
    }

    /// How many groups; those of a dense index may be empty.
    pub(super) fn len(&self) -> usize {
        self.groups
    }

    /// Whether every place has a group.
    pub(super) fn is_dense(&self) -> bool {
        !matches!(self.strategy, Strategy::Sort)
    }

    /// The place of a group, and its entries in index order.
    pub(super) fn get(&self, group: usize) -> (usize, &[usize]) {
        match self.strategy {
            Strategy::Last => {
                let entry = &self.order[group..=group];
                (group, if entry[0] == NONE { &[] } else { entry })
            }
            Strategy::Count => (group, &self.order[self.starts[group]..self.starts[group + 1]]),
            Strategy::Sort => {
                let entries = self.starts[group]..self.starts[group + 1];
                (self.named[group], &self.order[entries])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_keeps_index_order() {
        let index = [3usize, 1, 3, 0, 3, 1];
        for places in [4, 8 * index.len() + 8] {
            for last in [false, true] {
                let mut groups = Groups::with_capacity(index.len(), places, last).expect("small");
                for _ in 0..2 {
                    groups.fill(index.len(), |entry| index[entry]);
                    let found: Vec<(usize, Vec<usize>)> = (0..groups.len())
                        .map(|g| groups.get(g))
                        .filter(|(_, entries)| !entries.is_empty())
                        .map(|(place, entries)| match last {
                            true => (place, vec![entries[entries.len() - 1]]),
                            false => (place, entries.to_vec()),
                        })
                        .collect();
                    let all = [(0, vec![3]), (1, vec![1, 5]), (3, vec![0, 2, 4])];
                    let ends = [(0, vec![3]), (1, vec![5]), (3, vec![4])];
                    assert_eq!(found, if last { ends } else { all });
                }
            }
        }
    }
}
