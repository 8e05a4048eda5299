//! Measures the parts into which calls are split, for benchmarks.
//!
//! From the processor time of each part one can tell how the work grows with the number of threads,
//! and how long it would take on more cores than the machine has. If there are more threads than
//! cores, threads interrupt each other. So parts can also be run in turn by one helper, as each would run
//! on a core of its own. The helper is another thread, because parts that stream through memory would
//! evict the caches of the calling thread, which then would take longer between the phases.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Whether parts are measured.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether one helper runs all parts that are measured.
static IN_TURN: AtomicBool = AtomicBool::new(false);
static PHASES: Mutex<Vec<Phase>> = Mutex::new(Vec::new());

/// The thread that runs the parts in turn. It is kept, because a new thread would take 60 us for the
/// first part: its stack has no memory yet.
static HELPER: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();

thread_local! {
    /// Whether this thread is inside of a part. Parts of a part are not measured.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// How the work of calls was split among threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// The processor time of the calling thread between the phases, in ns.
    pub alone: u64,
    /// The phases of the calls. All parts of a phase end before the next phase begins. They are given by
    /// their processor times in ns, in the order in which they end. In turn, that is the order of the
    /// parts.
    pub phases: Vec<Vec<u64>>,
}

/// Work that was split into parts.
struct Phase {
    /// The processor time of the thread that has made the call. It includes the parts that this thread
    /// has worked on.
    caller: u64,
    parts: Vec<u64>,
}

/// Calls a function, and returns how its work was split among threads beside its result. If other
/// threads make calls at the same time, their phases are included. Calls are split into the same parts
/// as always, but with `in_turn` one helper runs all parts of a phase, one after the other.
///
/// ```
/// let (sum, recorded) = inlay_cpu::threads::recorded(false, || 1 + 1);
/// assert_eq!((sum, recorded.phases.len()), (2, 0));
/// ```
pub fn recorded<R>(in_turn: bool, call: impl FnOnce() -> R) -> (R, Recorded) {
    IN_TURN.store(in_turn, Relaxed);
    ON.store(true, Relaxed);
    let start = processor_time();
    let result = call();
    let time = processor_time() - start;
    ON.store(false, Relaxed);
    let phases = std::mem::take(&mut *PHASES.lock().unwrap_or_else(PoisonError::into_inner));
    let alone = phases.iter().fold(time, |time, phase| time.saturating_sub(phase.caller));
    (result, Recorded { alone, phases: phases.into_iter().map(|phase| phase.parts).collect() })
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
    let in_turn = IN_TURN.load(Relaxed);
    if INSIDE.get() {
        return if in_turn { (0..parts).for_each(work) } else { run(parts, work) };
    }
    let run = if in_turn { run_by_helper } else { run };
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

/// Calls `work` with each of `0..parts`, on one other thread.
fn run_by_helper(parts: usize, work: &(dyn Fn(usize) + Sync)) {
    let build = || rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
    let all = || (0..parts).for_each(work);
    match HELPER.get_or_init(build) {
        Some(helper) => helper.install(all),
        None => all(),
    }
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
