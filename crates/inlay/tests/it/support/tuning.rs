//! The thresholds of the CPU's kernels in tests: low ones, so that small tensors reach every strategy,
//! or those that users have.

use std::cell::Cell;
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use inlay_cpu::tuning::{CACHED, GRAIN, STREAM, Threshold};

/// Tests with low thresholds share it; a test with the thresholds of users has it alone.
static LOCK: RwLock<()> = RwLock::new(());

thread_local! {
    /// How many [`Low`] this thread has: a thread must not take the lock twice.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// What [`low`] sets to [`LOW`] bytes.
static LOWERED: [&Threshold; 3] = [&GRAIN, &STREAM, &CACHED];

/// Bytes that are split among threads, streamed, and too many for a cache, while thresholds are low.
pub(crate) const LOW: usize = 64 << 10;

fn lower() {
    LOWERED.iter().for_each(|threshold| std::mem::forget(threshold.set(LOW)));
}

/// Thresholds are low while this lives.
#[must_use = "thresholds are low until this is dropped"]
pub(crate) struct Low(#[expect(dead_code, reason = "held")] Option<RwLockReadGuard<'static, ()>>);

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

/// Thresholds are those that users have while this lives.
#[must_use = "thresholds are those of users until this is dropped"]
pub(crate) struct Released(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>);

/// Not inside of [`low`].
pub(crate) fn released() -> Released {
    assert_eq!(DEPTH.get(), 0, "low thresholds are given up first");
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
