//! Measures the parts into which calls are split, for benchmarks.
//!
//! From the processor time of each part one can tell how the work grows with the number of threads,
//! and how long it would take on more cores than the machine has. If there are more threads than
//! cores, threads interrupt each other. So parts can also be run in turn by the calling thread, as they
//! would run on a core of their own.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Whether parts are measured.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether the calling thread runs all parts that are measured.
static IN_TURN: AtomicBool = AtomicBool::new(false);
static PHASES: Mutex<Vec<Phase>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether this thread is inside of a part. Parts of a part are not measured.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Work that was split into parts for the threads. All of them end before the next phase begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Phase {
    /// The processor time of the thread that has made the call, in ns. It includes the parts that
    /// this thread has worked on.
    pub caller: u64,
    /// The processor time of each part, in ns, in the order in which the parts end. In turn, that is
    /// the order of the parts.
    pub parts: Vec<u64>,
}

/// Calls a function, and returns the phases of its calls beside its result. If other threads make
/// calls at the same time, their phases are included. Calls are split into the same parts as always,
/// but with `in_turn` the calling thread runs all of them.
///
/// ```
/// let (sum, phases) = inlay_cpu::threads::recorded(false, || 1 + 1);
/// assert_eq!((sum, phases.len()), (2, 0));
/// ```
pub fn recorded<R>(in_turn: bool, call: impl FnOnce() -> R) -> (R, Vec<Phase>) {
    IN_TURN.store(in_turn, Relaxed);
    ON.store(true, Relaxed);
    let result = call();
    ON.store(false, Relaxed);
    let mut phases = PHASES.lock().unwrap_or_else(PoisonError::into_inner);
    (result, std::mem::take(&mut *phases))
}

pub(super) fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Runs the work by `run`, and measures its parts.
pub(super) fn record(
    parts: usize,
    work: &(dyn Fn(usize) + Sync),
    run: fn(usize, &(dyn Fn(usize) + Sync)),
) {
    let in_turn = |parts: usize, work: &(dyn Fn(usize) + Sync)| (0..parts).for_each(work);
    let run = if IN_TURN.load(Relaxed) { in_turn } else { run };
    if INSIDE.get() {
        return run(parts, work);
    }
    let times = Mutex::new(Vec::new());
    let start = processor_time();
    run(parts, &|part| {
        INSIDE.set(true);
        let start = processor_time();
        work(part);
        let time = processor_time() - start;
        INSIDE.set(false);
        times.lock().unwrap_or_else(PoisonError::into_inner).push(time);
    });
    let caller = processor_time() - start;
    let parts = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    PHASES.lock().unwrap_or_else(PoisonError::into_inner).push(Phase { caller, parts });
}

/// Returns the processor time of the calling thread in ns.
#[cfg(unix)]
fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` can be written.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the time since the first call in ns: there is no clock of a thread.
#[cfg(not(unix))]
fn processor_time() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}
