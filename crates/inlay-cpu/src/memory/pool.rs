//! The pool: keeps free blocks by size class and reuses them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, TryLockError};

use inlay_core::{Error, Result};

use super::block::{RawBlock, SMALL};
use crate::settings::Variable;

/// Only blocks of at least this many bytes are kept. For smaller blocks the allocator is fast, and
/// returns memory that is still in the cache.
const POOLED: usize = 64 << 10;

/// Sets the most bytes of free blocks that the pool keeps.
pub(crate) static CACHE_LIMIT: Variable =
    Variable::new("INLAY_CACHE_LIMIT", "bytes", 0..=usize::MAX, || 512 << 20);

static FREE: Mutex<BTreeMap<usize, Vec<RawBlock>>> = Mutex::new(BTreeMap::new());
static CACHED: AtomicUsize = AtomicUsize::new(0);
/// The most bytes of free blocks, or `usize::MAX` while it was not determined yet.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static FRESH: AtomicUsize = AtomicUsize::new(0);
static REUSED: AtomicUsize = AtomicUsize::new(0);

/// The counters of the pool. Blocks of up to 896 bytes are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Bytes of all blocks that tensors and kernels hold now.
    pub in_use: usize,
    /// The largest value that `in_use` has had.
    pub peak: usize,
    /// Bytes of all free blocks in the pool.
    pub cached: usize,
    /// The largest value that `cached` may have.
    pub limit: usize,
    /// The number of blocks that were allocated from the system.
    pub fresh: usize,
    /// The number of blocks that were reused from the pool.
    pub reused: usize,
}

/// Returns the counters of the pool.
pub fn stats() -> Stats {
    Stats {
        in_use: IN_USE.load(Relaxed),
        peak: PEAK.load(Relaxed),
        cached: CACHED.load(Relaxed),
        limit: limit(),
        fresh: FRESH.load(Relaxed),
        reused: REUSED.load(Relaxed),
    }
}

/// Returns all free blocks to the system.
pub fn empty_cache() {
    trim(0);
}

/// Sets the most bytes of free blocks that the pool keeps, and returns blocks above that limit to
/// the system.
pub fn set_cache_limit(bytes: usize) {
    LIMIT.store(bytes.min(usize::MAX - 1), Relaxed);
    trim(bytes);
}

fn limit() -> usize {
    match LIMIT.load(Relaxed) {
        usize::MAX => {
            let bytes = CACHE_LIMIT.get().min(usize::MAX - 1);
            LIMIT.store(bytes, Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// Returns the size of the block for `len` bytes: its size class. There are four classes between
/// two powers of two, so at most a quarter of a block is unused. Returns `None` if the size
/// overflows.
fn class_of(len: usize) -> Option<usize> {
    if len < POOLED {
        return Some(len);
    }
    let step = (len.checked_next_power_of_two()? / 8).max(4096);
    len.checked_next_multiple_of(step).filter(|&len| isize::try_from(len).is_ok())
}

/// Locks the free list. Returns `None` if another thread holds the lock; then the caller uses the
/// system's allocator instead of waiting. So a forked child can't hang if a thread of its parent
/// held the lock during the fork.
fn free_list() -> Option<MutexGuard<'static, BTreeMap<usize, Vec<RawBlock>>>> {
    match FREE.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Returns a block of at least `len` bytes. The bytes are initialized, but their values are
/// unspecified.
pub(super) fn take(len: usize) -> Result<RawBlock> {
    if len <= SMALL {
        return RawBlock::new(len).ok_or(Error::OutOfMemory { bytes: len });
    }
    let class = class_of(len).ok_or(Error::OutOfMemory { bytes: len })?;
    let recycled = if class >= POOLED {
        free_list().and_then(|mut free| free.get_mut(&class)?.pop())
    } else {
        None
    };
    let block = match recycled {
        Some(block) => {
            CACHED.fetch_sub(class, Relaxed);
            REUSED.fetch_add(1, Relaxed);
            block
        }
        None => {
            let block = RawBlock::new(class).or_else(|| {
                empty_cache();
                RawBlock::new(class)
            });
            let block = block.ok_or(Error::OutOfMemory { bytes: len })?;
            FRESH.fetch_add(1, Relaxed);
            block
        }
    };
    let in_use = IN_USE.fetch_add(class, Relaxed) + class;
    PEAK.fetch_max(in_use, Relaxed);
    Ok(block)
}

/// Takes a block back. If the pool is full, other blocks are returned to the system first, because
/// the block that was used last is the most likely to be used next.
pub(super) fn give(block: RawBlock) {
    let class = block.len();
    if class <= SMALL {
        return;
    }
    IN_USE.fetch_sub(class, Relaxed);
    if class < POOLED || class > limit() {
        return;
    }
    trim(limit() - class);
    if CACHED.load(Relaxed).saturating_add(class) > limit() {
        return;
    }
    if let Some(mut free) = free_list() {
        free.entry(class).or_default().push(block);
        CACHED.fetch_add(class, Relaxed);
    }
}

/// Returns the largest free blocks to the system until at most `target` bytes are left. They are
/// freed after the lock is released.
fn trim(target: usize) {
    let mut dropped = Vec::new();
    if let Some(mut free) = free_list() {
        while CACHED.load(Relaxed) > target {
            let Some((&class, blocks)) = free.iter_mut().next_back() else { break };
            match blocks.pop() {
                Some(block) => {
                    CACHED.fetch_sub(class, Relaxed);
                    dropped.push(block);
                }
                None => {
                    free.remove(&class);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_at_most_a_quarter() {
        for len in (POOLED..POOLED * 40).step_by(4099) {
            let class = class_of(len).expect("small");
            assert!(class >= len && class - len <= len / 4 + 4096, "{len} in {class}");
        }
        assert_eq!(class_of(usize::MAX), None);
        assert_eq!(class_of(isize::MAX as usize), None);
    }

    #[test]
    fn a_size_beyond_the_machine_is_an_error() {
        assert!(take(1 << 60).is_err());
    }
}
