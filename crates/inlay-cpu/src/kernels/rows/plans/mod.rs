//! How threads share the entries of a scatter that is written directly.
//!
//! Results don't depend on the plan: the entries of a place are always combined in index order, and
//! no two threads write the same elements. If a reduction is exact, several threads may reduce the
//! entries of one place to partial results, which are merged in index order.

mod in_order;
mod partials;
mod partitioned;
mod pieces;
mod private;
mod scanned;
mod slice;
mod sliced;

use inlay_core::{Combine, Result};

use super::direct::Direct;
use crate::kernels::listing::IndexReader;
use crate::kernels::partition::may_partition;
use crate::threads;
use crate::tuning::SCANNED;

/// How the entries of a call are shared among threads.
pub(super) enum Plan {
    /// The threads share the slabs. Each reads the index in order and writes all entries.
    InOrder { parts: usize },
    /// The index is sorted, as far as a sample tells. The threads share slices of it: the first entry
    /// of each and its place.
    Sliced { slices: Vec<(usize, usize)> },
    /// There are few places, and the reduction is exact. Each thread reduces a slice of the entries
    /// into private places.
    Private { parts: usize },
    /// Each thread reads the whole index and writes the entries whose places it owns. It is used by
    /// few threads.
    Scanned { parts: usize },
    /// The entries are partitioned by ranges of places. The threads share the ranges. The work does
    /// not grow with the number of threads.
    Partitioned { parts: usize },
}

impl Plan {
    /// Returns whether the whole index is read and checked before anything is written in place.
    pub(super) fn checks_first(&self) -> bool {
        matches!(self, Plan::InOrder { .. } | Plan::Private { .. })
    }
}

/// What was found while entries were written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    All,
    /// An entry is out of range.
    Outside,
    /// An entry names a place that belongs to another slice.
    Elsewhere,
}

impl Direct<'_> {
    /// Returns how the entries are shared among threads.
    pub(super) fn plan(&self, index: &IndexReader<'_>) -> Plan {
        let parts = self.parts(index.len());
        let threads = parts.min(threads::num_threads());
        let alone = parts == 1 && self.assigns_at_once().is_some();
        if self.slabs() >= threads && !alone || !may_partition(index.len(), self.places()) {
            return Plan::InOrder { parts: parts.min(self.slabs()) };
        }
        let slices = (parts > 1).then(|| {
            let apart = self.call.combine != Combine::Assign && !self.may_merge();
            index.slices(parts.div_ceil(self.slabs()), self.places(), apart)
        });
        match slices.flatten() {
            Some(slices) => Plan::Sliced { slices },
            None => self.unsorted(parts, index.len()),
        }
    }

    /// Returns how the entries of an index that is not sorted are shared among threads.
    fn unsorted(&self, parts: usize, entries: usize) -> Plan {
        let threads = parts.min(threads::num_threads());
        if threads > 1 && self.has_private_places(entries, threads) {
            return Plan::Private { parts: threads };
        }
        match threads <= SCANNED.get() {
            true => Plan::Scanned { parts: threads.div_ceil(self.slabs()) },
            false => Plan::Partitioned { parts: parts.div_ceil(self.slabs()) },
        }
    }

    /// Returns the number of parts that are wanted for the threads.
    fn parts(&self, entries: usize) -> usize {
        let cost = 2 * self.row_bytes() + size_of::<i64>();
        threads::parts(entries.saturating_mul(self.slabs()), cost)
    }

    /// Returns whether the user's index can be used without a private copy if the destination is
    /// fresh, because each value is read once.
    pub(super) fn reads_index_once(&self, plan: &Plan) -> bool {
        matches!(plan, Plan::Partitioned { .. } | Plan::InOrder { .. } | Plan::Private { .. })
            || self.slabs() == 1
    }

    /// Writes all entries. Returns false if an entry is out of range; then some of the places were
    /// written.
    pub(super) fn run(&self, plan: &Plan, index: &IndexReader<'_>) -> Result<bool> {
        match *plan {
            Plan::InOrder { parts } => self.in_order(parts, index),
            Plan::Sliced { ref slices } => match self.sliced(slices, index)? {
                Some(inside) => Ok(inside),
                None => self.run(&self.unsorted(self.parts(index.len()), index.len()), index),
            },
            Plan::Private { parts } => self.private(parts, index),
            Plan::Scanned { parts } => self.scanned(parts, index),
            Plan::Partitioned { parts } if self.is_flat() => match self.call.dst.dtype().size() {
                1 => self.partitioned(parts, index, |entry| {
                    u32::from_ne_bytes([self.word::<u8>(entry), 0, 0, 0])
                }),
                2 => self.partitioned(parts, index, |entry| {
                    let [a, b] = self.word::<u16>(entry).to_ne_bytes();
                    u32::from_ne_bytes([a, b, 0, 0])
                }),
                4 => self.partitioned(parts, index, |entry| self.word::<u32>(entry)),
                _ => self.partitioned(parts, index, |entry| self.word::<u64>(entry)),
            },
            Plan::Partitioned { parts } => match self.call.selected {
                Some(selected) => self.partitioned(parts, index, |entry| selected[entry] as u32),
                None => self.partitioned(parts, index, |entry| entry as u32),
            },
        }
    }
}
