//! Version counters of memory, which gradients and programs check before they use a saved value.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the writes in place to a buffer, on any device.
#[derive(Debug, Default)]
pub struct Versions {
    all: AtomicU64,
    /// The number of the last write that was recorded for a gradient.
    recorded: AtomicU64,
}

impl Versions {
    /// Returns the counters of fresh memory.
    pub const fn new() -> Self {
        Versions { all: AtomicU64::new(0), recorded: AtomicU64::new(0) }
    }

    /// The number of writes so far.
    #[inline]
    pub fn current(&self) -> u64 {
        self.all.load(Ordering::Acquire)
    }

    /// The number of the last write that was recorded for a gradient, or 0.
    #[inline]
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Acquire)
    }

    /// Counts a write in place. `recorded` says whether it was recorded for a gradient.
    #[inline]
    pub fn count_write(&self, recorded: bool) {
        let version = self.all.fetch_add(1, Ordering::AcqRel) + 1;
        if recorded {
            self.recorded.fetch_max(version, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_writes_are_told_from_others() {
        let versions = Versions::new();
        versions.count_write(true);
        versions.count_write(false);
        assert_eq!((versions.current(), versions.recorded()), (2, 1));
    }
}
