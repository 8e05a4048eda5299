//! The thresholds between strategies, which tests and `make sweep` can change.
//!
//! No threshold changes a result. The measurement behind each value is given in parentheses, and
//! `make sweep` repeats the measurements on the current machine. Unless stated otherwise,
//! measurements were made in November 2026 on two cores of an AMD EPYC (Zen 4) with caches of 32
//! KiB, 1 MiB and 32 MiB.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::arch::caches::caches;

/// A number that decides between two strategies. Reading it is a relaxed load.
#[derive(Debug)]
pub struct Threshold {
    /// The name of the threshold, as `make sweep` shows it.
    pub name: &'static str,
    value: AtomicUsize,
    default: fn() -> usize,
}

/// The stored value while the default was not computed yet.
const UNSET: usize = usize::MAX;

impl Threshold {
    const fn new(name: &'static str, default: fn() -> usize) -> Self {
        Threshold { name, value: AtomicUsize::new(UNSET), default }
    }

    /// Returns the value.
    #[inline]
    pub fn get(&self) -> usize {
        match self.value.load(Relaxed) {
            UNSET => self.reset(),
            value => value,
        }
    }

    /// Sets the value to the default, and returns it.
    #[cold]
    pub fn reset(&self) -> usize {
        let value = (self.default)();
        self.value.store(value, Relaxed);
        value
    }

    /// Changes the value until the returned guard is dropped. The value is clamped to at least 1
    /// and less than [`usize::MAX`].
    pub fn set(&'static self, value: usize) -> Changed {
        let before = self.get();
        self.value.store(value.clamp(1, UNSET - 1), Relaxed);
        Changed { threshold: self, before }
    }
}

/// A guard that restores the value of a threshold on drop.
#[must_use = "the threshold is changed until this is dropped"]
#[derive(Debug)]
pub struct Changed {
    threshold: &'static Threshold,
    before: usize,
}

impl Drop for Changed {
    fn drop(&mut self) {
        self.threshold.value.store(self.before, Relaxed);
    }
}

/// Declares the thresholds, and the list of all of them.
macro_rules! thresholds {
    ($($(#[$doc:meta])* $name:ident = $default:expr;)*) => {
        $($(#[$doc])* pub static $name: Threshold = Threshold::new(stringify!($name), || $default);)*

        /// All thresholds.
        pub static ALL: &[&Threshold] = &[$(&$name),*];
    };
}

thresholds! {
    /// The fewest bytes of work for each part that is given to a thread. It takes 5 to 15 us to
    /// wake a thread, so less work is done faster by one thread. (Copy of 256 KiB: 6.5 us with one
    /// thread, 19 us with two. Copy of 4 MiB: 92 us with one thread, 60 us with two.)
    GRAIN = 512 << 10;

    /// Results of at least this many bytes are written by non-temporal stores, because the
    /// last-level cache can't hold them. (Copies with a cache of 32 MiB: 16 MiB take 0.43 ms by
    /// ordinary and 0.65 ms by non-temporal stores; 32 MiB take 1.3 ms by both, on one core 1.9 and
    /// 1.5 ms; 64 MiB take 3.4 and 2.6 ms. Fills gain nothing at any size: 64 MiB take 1.8 and 2.4
    /// ms.)
    STREAM = caches().last;

    /// Up to this many threads read the whole index each and write the entries whose places they
    /// own. More threads partition the entries first, which takes the same work with any number of
    /// threads. (Processor time of sums of 10M values into 1M: one thread takes 38 ms; each of 2, 4
    /// and 8 threads reads the index in 36, 50 and 77 ms, and 4, 16 and 64 threads partition it in
    /// 58, 65 and 79 ms.)
    SCANNED = 8;

    /// The most bytes of entries, and of the rows of updates that belong to them, that are
    /// partitioned at a time: half of the last-level cache, so that they are still there when they
    /// are used. (Sums of 10M values into 10k: the entries are used in 8 ms of processor time instead
    /// of 12.) A larger destination does not stay there beside the updates, so a few threads write
    /// rows of it by place. (Sums of 1M rows of 256 bytes into 25 MB: 10.4 ms instead of 13.6.)
    WAVE = caches().last / 2;

    /// The most places per entry for which a direct scatter keeps a note for every place. A note is
    /// a bit or a byte, and clearing the notes of all places takes less time than sorting the
    /// entries. (Sums of rows of 16 bytes into 1M places on two threads: notes take 0.5 of the time
    /// at 32 places per entry, and the same time at 64 to 128.)
    NOTED = 32;

    /// Contiguous rows of up to this many bytes are prefetched. Longer rows are left to the
    /// hardware prefetcher. (`index_select` from 64 MiB: without prefetching it takes 1.8 of the
    /// time for rows of 256 bytes, 1.3 for 1 KiB, 1.04 for 8 KiB, 0.95 for 16 KiB.)
    SHORT_ROW = 8 << 10;

    /// Up to this many contiguous elements are processed as one run, without a walk. (`masked_fill`
    /// without and with a walk: 0.43 and 0.48 us for 64 elements, 0.57 and 0.63 us for 1024, 3.27
    /// and 3.32 us for 32K.)
    FEW = 1024;

    /// If at most this many of 64 mask elements are true, an expansion copies all 64 old elements
    /// and then writes the new ones one by one. With more, each element is chosen without a branch.
    /// It applies where there is no vector code. (1M `f32`, one thread: one by one takes 0.4 of the
    /// time at 8 of 64, and 0.7 at 32.)
    EXPAND_SPARSE = 32;

    /// If at most this many of 64 mask elements are true, a compression copies the selected
    /// elements one by one. With more, it stores every element at the next free position and
    /// advances that position by the mask bit, without a branch. It applies where there is no
    /// vector code. (1M `f32`, one thread: one by one takes 0.5 of the time at 16 of 64, and 0.8 at
    /// 32.)
    COMPRESS_SPARSE = 32;

    /// An index is dense if there are at most this many places per entry. The entries of a dense
    /// index are grouped by a counting sort over all places, those of a sparse index by sorting the
    /// entries. (Rows of 16 `f16` into 256K places: sorting takes 1.2 of the time of counting at 8
    /// places per entry, and a fraction of it from 32 on. They take the same time between 8 and
    /// 17.)
    DENSE = 8;

    /// With at most this many places per entry, `put_along_axis` copies each lane just before it is
    /// written. With more, it copies the whole tensor first. (2048 x 2048 `f32` along the last axis:
    /// copying first takes 1.5 of the time at 16 places per entry, and 1.2 to 1.3 at 256.)
    COPIED = 256;

    /// `take_along_axis` prefetches the next lane if a contiguous lane has at most this many bytes:
    /// a quarter of the second-level cache. (16 MiB of `f32` along the last axis: without
    /// prefetching it takes 1.5 of the time for lanes of 8 KiB, 1.3 for 32 KiB, 1.1 for 256 KiB.)
    SHORT_LANE = caches().second / 4;

    /// The most bytes of a tile to which lanes are moved: half of the second-level cache.
    TILE = caches().second / 2;

    /// If the teeth of a comb (a slice with a step) have at least this many bytes, the teeth and
    /// the gaps between them are copied as separate parts. Narrower teeth are interleaved with the
    /// gaps. (Every other row of 32 MiB, in rows of 512 bytes: half of the time.)
    WIDE_TOOTH = 256;

    /// If the contiguous runs of a region have fewer bytes than this, the whole tensor is copied
    /// and the region is written over the copy. Otherwise only the rest of the tensor is copied.
    /// (The middle half of rows of 512 bytes, 16 MiB: 1.5 ms instead of 2.5.)
    SHORT_RUN = 512;

    /// A region is small if its tensor has at least this many times as many elements. (256 KiB:
    /// writing the region over a copy takes 0.92 of the time if the region is at most 1/8 of the
    /// tensor, and 1.5 at 1/2.)
    SMALL_REGION = 64;

    /// A tensor of at most this many bytes is copied as a whole before a small region of it is
    /// written. It is half of the second-level cache, so that the region is still in the cache.
    /// (Writing the region over a copy takes 0.7 of the time at 16 KiB, 0.95 at 512 KiB, 0.97 at 1
    /// MiB.)
    COPIED_WHOLE = caches().second / 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_ends_with_its_guard() {
        let before = SHORT_ROW.get();
        let changed = SHORT_ROW.set(usize::MAX);
        assert_eq!(SHORT_ROW.get(), usize::MAX - 1);
        drop(changed);
        assert_eq!((SHORT_ROW.get(), SHORT_ROW.reset()), (before, before));
    }
}
