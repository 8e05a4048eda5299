//! The thresholds of the CPU kernels in tests: low values, so that small tensors reach every
//! strategy, or the defaults.

use std::cell::Cell;
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use inlay_cpu::tuning::{GRAIN, STREAM, Threshold, WAVE};

/// Tests with low thresholds hold this lock shared. Tests with default thresholds hold it
/// exclusively.
static LOCK: RwLock<()> = RwLock::new(());

thread_local! {
    /// The number of [`Low`] guards of this thread. Only the first takes the lock, because a thread
    /// must not take it twice.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The thresholds that [`low`] sets to [`LOW`] bytes.
static LOWERED: [&Threshold; 3] = [&GRAIN, &STREAM, &WAVE];

/// The low value in bytes. Larger work is split among threads, larger results are written with
/// non-temporal stores, and more entries are partitioned in several waves.
pub(crate) const LOW: usize = 64 << 10;

fn lower() {
    LOWERED.iter().for_each(|threshold| std::mem::forget(threshold.set(LOW)));
}

/// A guard: thresholds are low while it lives.
#[must_use = "thresholds are low until this is dropped"]
pub(crate) struct Low(
    #[expect(dead_code, reason = "held until dropped")] Option<RwLockReadGuard<'static, ()>>,
);

pub(crate) fn low() -> Low {
    static LOWER: Once = Once::new();
    let depth = DEPTH.replace(DEPTH.get() + 1);
    let lock = (depth == 0).then(|| LOCK.read().unwrap_or_else(PoisonError::into_inner));
    LOWER.call_once(lower);
    Low(lock)
}

impl Drop for Low {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// A guard: thresholds have their defaults while it lives.
#[must_use = "thresholds have their defaults until this is dropped"]
pub(crate) struct Released(
    #[expect(dead_code, reason = "held until dropped")] RwLockWriteGuard<'static, ()>,
);

/// Sets the thresholds to their defaults. Panics if this thread holds a [`Low`].
pub(crate) fn released() -> Released {
    assert_eq!(DEPTH.get(), 0, "drop the guard of low thresholds first");
    let lock = LOCK.write().unwrap_or_else(PoisonError::into_inner);
    for threshold in LOWERED {
        threshold.reset();
    }
    Released(lock)
}

impl Drop for Released {
    fn drop(&mut self) {
        lower();
    }
}
