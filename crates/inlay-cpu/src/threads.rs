//! The thread pool, and how work is split among threads.
//!
//! The pool is built on first use and rebuilt when the number of threads changes. A forked child
//! abandons the pool, because its threads exist only in the parent. If another thread holds the
//! lock of the pool, the caller does all of its work alone. Results never depend on the number of
//! threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use rayon::ThreadPool;

use crate::tuning::GRAIN;

/// The number of parts per thread. With several parts, a thread that is descheduled delays the call
/// by one part only.
const PARTS_PER_THREAD: usize = 4;

/// How long a thread spin-waits before it sleeps. Waking a thread takes longer than most waits.
const LINGER: Duration = Duration::from_micros(50);

/// Counts the calls that were split among threads, so that spin-waiting threads see the next one.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// The number of spawned helpers that have not started yet.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The number of threads that a call may use, or 0 while it was not determined yet.
static WANTED: AtomicUsize = AtomicUsize::new(0);
/// Incremented in the child of every fork. A pool that was built at another count belongs to an
/// ancestor process, and its threads don't exist here.
static FORKS: AtomicUsize = AtomicUsize::new(0);
static POOL: Mutex<Option<Built>> = Mutex::new(None);

struct Built {
    pool: Arc<ThreadPool>,
    threads: usize,
    forks: usize,
}

/// Returns how many threads a call may use.
pub fn num_threads() -> usize {
    match WANTED.load(Relaxed) {
        0 => {
            let from_env = std::env::var("INLAY_NUM_THREADS").ok().and_then(|v| v.parse().ok());
            let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
            let threads = from_env.filter(|&n| n > 0).unwrap_or_else(cores).min(MAX_THREADS);
            WANTED.store(threads, Relaxed);
            threads
        }
        threads => threads,
    }
}

/// The largest number of threads that can be set. More would only exhaust the system.
pub const MAX_THREADS: usize = 1024;

/// Sets how many threads a call may use: 1 to [`MAX_THREADS`].
pub fn set_num_threads(threads: usize) {
    WANTED.store(threads.clamp(1, MAX_THREADS), Relaxed);
}

/// Splits `0..len` into ranges and calls `work` with each. Uses several threads if there is enough
/// work for them, at `cost` bytes per item. The ranges depend only on the arguments, the number of
/// threads and [`GRAIN`].
pub(crate) fn split(len: usize, cost: usize, work: impl Fn(Range<usize>) + Sync) {
    let parts = parts(len, cost);
    if parts <= 1 {
        return work(0..len);
    }
    run(parts, |part| work(part_of(len, parts, part)));
}

/// Returns the number of parts that [`split`] makes.
pub(crate) fn parts(len: usize, cost: usize) -> usize {
    let total = len.saturating_mul(cost.max(1));
    let grain = GRAIN.get().max(1);
    if total / 2 < grain || len < 2 {
        return 1;
    }
    let threads = num_threads();
    if threads == 1 {
        return 1;
    }
    (total / grain).min(threads * PARTS_PER_THREAD).min(len)
}

/// Returns the range of part `part` when `0..len` is split into `parts`.
pub(crate) fn part_of(len: usize, parts: usize, part: usize) -> Range<usize> {
    let (size, more) = (len / parts, len % parts);
    let start = part * size + part.min(more);
    start..start + size + usize::from(part < more)
}

/// Calls `work` with each of `0..parts`, on several threads if the pool is available.
pub(crate) fn run(parts: usize, work: impl Fn(usize) + Sync) {
    // A worker thread of any rayon pool works alone. All cores have work already. And a worker that
    // waits may run another job of its pool, which could wait for a lock that this thread holds.
    let alone = parts <= 1 || rayon::current_thread_index().is_some();
    let Some(pool) = (if alone { None } else { pool() }) else {
        return (0..parts).for_each(work);
    };
    // Each thread takes the next part when it is free. The caller is one of them.
    let next = AtomicUsize::new(0);
    let take = || {
        while let part @ 0.. = next.fetch_add(1, Relaxed)
            && part < parts
        {
            work(part);
        }
    };
    let call = CALLS.fetch_add(1, Relaxed).wrapping_add(1);
    let helpers = AtomicUsize::new(num_threads().min(parts) - 1);
    WAITING.fetch_add(helpers.load(Relaxed), Relaxed);
    pool.in_place_scope(|scope| {
        for _ in 0..helpers.load(Relaxed) {
            scope.spawn(|_| {
                WAITING.fetch_sub(1, Relaxed);
                take();
                helpers.fetch_sub(1, Relaxed);
                let wanted = move || CALLS.load(Relaxed) != call || WAITING.load(Relaxed) > 0;
                rayon::spawn(move || linger(wanted));
            });
        }
        take();
        linger(|| helpers.load(Relaxed) == 0);
    });
}

/// Spin-waits until `done` returns true or [`LINGER`] has passed. The caller waits for the helpers
/// to finish, and a helper waits for the next call. Both usually take less time than waking a
/// sleeping thread.
fn linger(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() && start.elapsed() < LINGER {
        (0..32).for_each(|_| std::hint::spin_loop());
    }
}

fn pool() -> Option<Arc<ThreadPool>> {
    watch_forks();
    let (threads, forks) = (num_threads(), FORKS.load(Relaxed));
    let mut slot = match POOL.try_lock() {
        Ok(slot) => slot,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    if let Some(built) = &*slot
        && built.threads == threads
        && built.forks == forks
    {
        return Some(Arc::clone(&built.pool));
    }
    let old = slot.take();
    if let Some(old) = old.filter(|old| old.forks != forks) {
        // The threads of the old pool exist only in the parent, so dropping it would wait forever.
        std::mem::forget(old);
    }
    // The caller is one of the threads, so the pool has one less.
    let name = |n| format!("inlay-{n}");
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.max(2) - 1).thread_name(name);
    let pool = Arc::new(builder.build().ok()?);
    *slot = Some(Built { pool: Arc::clone(&pool), threads, forks });
    Some(pool)
}

#[cfg(unix)]
fn watch_forks() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Relaxed);
    }
    static WATCH: std::sync::Once = std::sync::Once::new();
    WATCH.call_once(|| {
        // SAFETY: the handler has the right signature and only adds to an atomic, which is
        // async-signal-safe and so allowed in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

#[cfg(not(unix))]
fn watch_forks() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_range_once() {
        for len in [0, 1, 5, 64, 1000] {
            for parts in 1..=7 {
                let mut next = 0;
                for part in 0..parts {
                    let range = part_of(len, parts, part);
                    assert_eq!(range.start, next);
                    next = range.end;
                }
                assert_eq!(next, len);
            }
        }
    }
}
