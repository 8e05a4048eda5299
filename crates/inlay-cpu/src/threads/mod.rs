//! How work is split among threads.
//!
//! A caller that is not a worker thread of a rayon pool uses Inlay's own pool (`pool`). A worker
//! uses the threads of its own pool, so a program never has more busy threads than it has set up.
//! In a process whose other libraries compute with OpenMP, its threads may be used (`openmp`).
//! In both cases the caller takes part, and waits only for helpers that have started (`desk`).
//! Results never depend on the number of threads.

mod desk;
#[cfg(unix)]
mod openmp;
mod pool;
mod recording;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::settings::Variable;
use crate::tuning::GRAIN;

#[cfg(unix)]
pub use openmp::use_openmp;
pub use recording::{Recorded, recorded};

/// The number of parts per thread. With several parts, a thread that is descheduled delays the call
/// by one part only.
const PARTS_PER_THREAD: usize = 4;

/// The largest number of threads that can be set. More would only exhaust the system.
pub const MAX_THREADS: usize = 1024;

/// The number of threads that a call may use, or 0 while it was not determined yet.
static WANTED: AtomicUsize = AtomicUsize::new(0);

/// Whether the user has set the number of threads. Otherwise it may be limited further where a call
/// is made.
static CHOSEN: AtomicBool = AtomicBool::new(false);

/// Sets the initial number of threads.
pub(crate) static NUM_THREADS: Variable =
    Variable::new("INLAY_NUM_THREADS", "threads", 1..=MAX_THREADS, || {
        of_openmp(std::env::var("OMP_NUM_THREADS").ok().as_deref()).unwrap_or(cores()).min(cores())
    });

/// Returns the number of threads that `OMP_NUM_THREADS` sets: the first one of a list, one number
/// for each level of nesting. Programs that start several processes set it, such as `torchrun` and
/// joblib, so that the processes share the cores.
fn of_openmp(text: Option<&str>) -> Option<usize> {
    let first = text?.split(',').next()?.trim();
    first.parse().ok().filter(|threads| *threads > 0)
}

/// Returns the number of cores that the process may use. An affinity mask and, on Linux, the
/// processor quota of a container limit it.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        std::thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS)
    })
}

/// Returns how many threads a call may use.
pub fn num_threads() -> usize {
    match WANTED.load(Relaxed) {
        0 => {
            let threads = NUM_THREADS.get();
            CHOSEN.store(NUM_THREADS.is_set(), Relaxed);
            WANTED.store(threads, Relaxed);
            threads
        }
        threads => threads,
    }
}

/// Sets how many threads a call may use: 1 to [`MAX_THREADS`].
pub fn set_num_threads(threads: usize) {
    CHOSEN.store(true, Relaxed);
    WANTED.store(threads.clamp(1, MAX_THREADS), Relaxed);
}

/// Returns whether calls use more threads than there are cores. Then a thread that spin-waits would
/// take time from one that works.
fn is_crowded() -> bool {
    num_threads() > cores()
}

/// Splits `0..len` into ranges and calls `work` with each. Uses several threads if there is enough
/// work for them, at `cost` bytes per item. The ranges depend only on the arguments, the number of
/// threads and [`GRAIN`].
#[inline]
pub(crate) fn split(len: usize, cost: usize, work: impl Fn(Range<usize>) + Sync) {
    split_erased(len, cost, &work);
}

/// [`split`] for any work. It is compiled once, and not for each kernel and type.
fn split_erased(len: usize, cost: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let parts = parts(len, cost);
    if parts <= 1 {
        return work(0..len);
    }
    run_erased(parts, &|part| work(part_of(len, parts, part)));
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
    (total / grain).min(most_parts()).min(len)
}

/// Returns the most parts that a call is split into.
pub(crate) fn most_parts() -> usize {
    num_threads() * PARTS_PER_THREAD
}

/// Returns the range of part `part` when `0..len` is split into `parts`.
pub(crate) fn part_of(len: usize, parts: usize, part: usize) -> Range<usize> {
    let (size, more) = (len / parts, len % parts);
    let start = part * size + part.min(more);
    start..start + size + usize::from(part < more)
}

/// Calls `work` with each of `0..parts`, on several threads if there are any.
#[inline]
pub(crate) fn run(parts: usize, work: impl Fn(usize) + Sync) {
    run_erased(parts, &work);
}

/// [`run`] for any work. It is compiled once, and not for each kernel and type.
fn run_erased(parts: usize, work: &(dyn Fn(usize) + Sync)) {
    if recording::is_on() {
        return recording::record(parts, work, run_on_threads);
    }
    run_on_threads(parts, work);
}

fn run_on_threads(parts: usize, work: &(dyn Fn(usize) + Sync)) {
    let threads = num_threads().min(parts);
    let done = match rayon::current_thread_index() {
        _ if threads <= 1 => false,
        Some(_) => run_in_worker(parts, work, threads),
        #[cfg(unix)]
        None => match openmp::run(parts, work, threads) {
            openmp::Ran::Everything => true,
            openmp::Ran::Alone if !CHOSEN.load(Relaxed) => false,
            _ => pool::run(parts, work, threads - 1),
        },
        #[cfg(not(unix))]
        None => pool::run(parts, work, threads - 1),
    };
    if !done {
        (0..parts).for_each(work);
    }
}

/// Calls `work` with each of `0..parts`, on at most `threads` threads of the current rayon pool.
/// Returns false, and calls nothing, if no other thread can help.
fn run_in_worker(parts: usize, work: &(dyn Fn(usize) + Sync), threads: usize) -> bool {
    let helpers = rayon::current_num_threads().min(threads) - 1;
    helpers > 0 && desk::run(parts, work, helpers, |helper| rayon::spawn(|| helper.help()))
}

#[cfg(test)]
mod tests;
