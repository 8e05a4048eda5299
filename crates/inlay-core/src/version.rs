//! How often memory was written in place: what gradients and programs ask before they trust a value.

use std::sync::atomic::{AtomicU64, Ordering};

/// The writes in place that a buffer has seen, wherever it is.
#[derive(Debug, Default)]
pub struct Versions {
    all: AtomicU64,
    /// The last one that a gradient goes through.
    recorded: AtomicU64,
}

impl Versions {
    /// Of fresh memory.
    pub const fn new() -> Self {
        Versions { all: AtomicU64::new(0), recorded: AtomicU64::new(0) }
    }

    /// How many writes were counted.
    #[inline]
    pub fn current(&self) -> u64 {
        self.all.load(Ordering::Acquire)
    }

    /// The number of the last write that a gradient goes through, or 0.
    #[inline]
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Acquire)
    }

    /// Counts a write in place, and whether a gradient goes through it.
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
