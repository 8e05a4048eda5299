//! The thresholds between strategies, which tests and `make sweep` can change.
//!
//! No threshold changes a result. Beside each stands the measurement that set it; `make sweep` repeats
//! these measurements on the machine at hand. Figures without another name are from an AMD EPYC of the
//! Zen 4 generation, two cores with 32 KiB, 1 MiB and 32 MiB of cache, in November 2026.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::arch::caches::caches;

/// A number that decides between two strategies. To read it is a relaxed load.
#[derive(Debug)]
pub struct Threshold {
    /// Its name, as `make sweep` shows it.
    pub name: &'static str,
    value: AtomicUsize,
    default: fn() -> usize,
}

/// The value of a threshold whose default was not asked for yet.
const UNSET: usize = usize::MAX;

impl Threshold {
    const fn new(name: &'static str, default: fn() -> usize) -> Self {
        Threshold { name, value: AtomicUsize::new(UNSET), default }
    }

    /// Its value.
    #[inline]
    pub fn get(&self) -> usize {
        match self.value.load(Relaxed) {
            UNSET => self.reset(),
            value => value,
        }
    }

    /// Gives it the value that it has outside of tests.
    #[cold]
    pub fn reset(&self) -> usize {
        let value = (self.default)();
        self.value.store(value, Relaxed);
        value
    }

    /// Changes it for as long as the result lives. The value is at least 1, and below [`usize::MAX`].
    pub fn set(&'static self, value: usize) -> Changed {
        let before = self.get();
        self.value.store(value.clamp(1, UNSET - 1), Relaxed);
        Changed { threshold: self, before }
    }
}

/// A threshold has another value while this lives.
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

/// Declares thresholds, and lists them.
macro_rules! thresholds {
    ($($(#[$doc:meta])* $name:ident = $default:expr;)*) => {
        $($(#[$doc])* pub static $name: Threshold = Threshold::new(stringify!($name), || $default);)*

        /// All of them.
        pub static ALL: &[&Threshold] = &[$(&$name),*];
    };
}

thresholds! {
    /// Bytes of work below which a second thread costs more than it brings: it takes 5 to 15 us to wake.
    /// (256 KiB into as many: 6.5 us alone, 19 with two threads. 4 MiB: 92 us alone, 60 with two.)
    GRAIN = 512 << 10;

    /// Results of at least so many bytes are written by non-temporal stores: those that the last-level
    /// cache can't hold. (Copies with 32 MiB of it: 16 MiB in 0.43 ms, by non-temporal stores in 0.65;
    /// 32 MiB in 1.3 both ways, on one core in 1.9 and 1.5; 64 MiB in 3.4 and 2.6. Fills gain nothing
    /// at any size: 64 MiB in 1.8 and 2.4 ms.)
    STREAM = caches().last;

    /// Bytes of all updates up to which several threads reduce rows directly, as one thread does: twice
    /// the last-level cache. (200k rows of 256 bytes: 2.0 ms instead of 2.3, 100k of 128 bytes 0.6
    /// instead of 1.0; 1M of 256 bytes 19 instead of 15.)
    CACHED = 2 * caches().last;

    /// Places for an entry up to which a direct scatter notes what each place held before. A note is a
    /// bit or a byte to clear, which is less than to sort the entry. (Sums of rows of 16 bytes into 1M
    /// places, two threads: with notes 0.5 of the time at 32 places for an entry; equal at 64 to 128.)
    NOTED = 32;

    /// Bytes of a row without gaps up to which it is prefetched. For longer rows the hardware
    /// prefetcher does that.
    SHORT_ROW = 4 << 10;

    /// Elements up to which a call needs no walk. (`masked_fill` without a walk: 0.43 us instead of 0.48 for
    /// 64 elements, 0.57 instead of 0.63 for 1024, 3.27 instead of 3.32 for 32K.)
    FEW = 1024;

    /// True elements among 64 up to which an expansion copies the other elements as a whole and writes the
    /// true ones over them one by one. With more, each element is chosen without a branch. Portable
    /// level only. (1M floats, one thread: one by one takes 0.4 of the time at 8 of 64, 0.7 at 32.)
    EXPAND_SPARSE = 32;

    /// True elements among 64 up to which a compression moves them one by one. With more, every element is
    /// moved to where the next true one belongs. Portable level only. (1M floats, one thread: one by one
    /// takes 0.5 of the time at 16 of 64, 0.8 at 32.)
    COMPRESS_SPARSE = 32;

    /// Places for an entry up to which an index is dense: its places are counted, and not its entries
    /// sorted. (16 half floats into 256K places: sorting takes 1.2 of the time at 8 places for an entry,
    /// a fraction of it from 32 on; they cross between 8 and 17.)
    DENSE = 8;

    /// Places for an entry up to which `put_along_axis` copies each lane just before it is written. With
    /// more, all is copied first.
    COPIED = 16;

    /// Bytes of a contiguous lane up to which `take_along_axis` prefetches the next one: half of the
    /// first-level cache.
    SHORT_LANE = caches().first / 2;

    /// The most bytes of a tile that lanes are moved to: half of the second-level cache.
    TILE = caches().second / 2;

    /// Bytes of a tooth of a comb from which the teeth and the gaps are copied as parts of their own.
    /// Narrower teeth are interleaved with the gaps. (Every other row of 32 MiB, in rows of 512 bytes:
    /// half of the time.)
    WIDE_TOOTH = 256;

    /// Contiguous bytes of a region below which it is written over a copy of the whole. From there on
    /// only the rest of the whole is copied. (The middle half of rows of 512 bytes, 16 MiB: 1.5 ms
    /// instead of 2.5.)
    SHORT_RUN = 512;

    /// A region is small if it has at most one of so many elements of its tensor. (256 KiB: over a copy takes
    /// 0.92 of the time from one of 8 on, 1.5 at one half.)
    SMALL_REGION = 64;

    /// Bytes of a tensor up to which it is copied as a whole before a small region of it is written: half
    /// of the second-level cache, in which the region still is then. (Over a copy takes 0.7 of the time at
    /// 16 KiB, 0.95 at 512 KiB, 0.97 at 1 MiB.)
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
