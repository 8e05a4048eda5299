//! Inlay's own threads, for callers that are not worker threads of a rayon pool.
//!
//! The pool is built on first use and rebuilt when the number of threads changes. A forked child
//! abandons the pool, because its threads exist only in the parent. If another thread holds the
//! lock of the pool, the caller does all of its work alone.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, TryLockError};

use rayon::ThreadPool;

use super::desk::{self, linger};
use super::num_threads;

/// Counts the calls that were split among threads, so that spin-waiting threads see the next one.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// The number of spawned helpers that have not started yet.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Incremented in the child of every fork. A pool that was built at another count belongs to an
/// ancestor process, and its threads don't exist here.
static FORKS: AtomicUsize = AtomicUsize::new(0);
static POOL: Mutex<Option<Built>> = Mutex::new(None);

struct Built {
    pool: Arc<ThreadPool>,
    threads: usize,
    forks: usize,
}

/// Calls `work` with each of `0..parts`, on this thread and on at most `helpers` threads of the
/// pool. Returns false, and calls nothing, if there is no pool for this call.
pub(super) fn run(parts: usize, work: &(dyn Fn(usize) + Sync), helpers: usize) -> bool {
    let Some(pool) = pool() else { return false };
    let call = CALLS.fetch_add(1, Relaxed).wrapping_add(1);
    desk::run(parts, work, helpers, |helper| {
        WAITING.fetch_add(1, Relaxed);
        pool.spawn(move || {
            WAITING.fetch_sub(1, Relaxed);
            helper.help();
            // The next call often follows soon.
            linger(|| CALLS.load(Relaxed) != call || WAITING.load(Relaxed) > 0);
        });
    })
}

fn pool() -> Option<Arc<ThreadPool>> {
    let (threads, forks) = (num_threads(), forks());
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

/// Returns the number of forks between the first call and this process.
#[cfg(unix)]
pub(super) fn forks() -> usize {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Relaxed);
    }
    static WATCH: std::sync::Once = std::sync::Once::new();
    WATCH.call_once(|| {
        // SAFETY: the handler has the right signature and only adds to an atomic, which is
        // async-signal-safe and so allowed in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    FORKS.load(Relaxed)
}

#[cfg(not(unix))]
pub(super) fn forks() -> usize {
    0
}
