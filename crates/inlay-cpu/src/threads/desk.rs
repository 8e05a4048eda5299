//! The desk of a thread: the work that it shares with helpers, and the gate that lets them in.
//!
//! A call opens the gate, asks a pool for helpers, and takes parts until none is left. Then it
//! closes the gate, and waits for the helpers that have entered. A helper that starts later finds
//! the gate closed, or helps with a later call of the same thread.
//!
//! So a call waits only for parts that other threads are working on, and a part never waits for a
//! lock that is held during a call. While the caller waits, it runs no other jobs. That matters in
//! a worker thread of a pool: another job might wait for a lock that this thread holds, such as the
//! lock of a tensor, and would never return.

use std::any::Any;
use std::cell::{RefCell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::{is_crowded, pool};

/// How long a thread spin-waits before it sleeps. Waking a thread takes longer than most waits.
const LINGER: Duration = Duration::from_micros(50);

/// The bit of the gate that is set while helpers may enter. The other bits count those inside.
const OPEN: usize = 1 << (usize::BITS - 1);

/// A value of [`Desk::next`] that is larger than every number of parts, and far from overflow.
const NO_MORE: usize = usize::MAX / 2;

struct Desk {
    gate: AtomicUsize,
    /// The current call. The owner writes it while the gate is closed and nobody is inside.
    call: UnsafeCell<Option<Call>>,
    /// The number of the first part that nobody has taken.
    next: AtomicUsize,
    /// The number of helpers that were asked for and have not started yet.
    awaited: AtomicUsize,
    /// The panic of a helper, which the owner continues.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    owner: Thread,
    /// The number of forks before the desk was made. Helpers that were asked for in a parent
    /// process never start in its child.
    forks: usize,
}

#[derive(Clone, Copy)]
struct Call {
    parts: usize,
    /// The most helpers that may work at a time.
    helpers: usize,
    /// Valid while the gate is open or a helper is inside.
    work: &'static (dyn Fn(usize) + Sync),
}

// SAFETY: `call` is written by the owner while the gate is closed and nobody is inside, and read by
// helpers between entering and leaving. The gate orders these accesses. The other fields are
// `Sync`, and so is the work.
unsafe impl Sync for Desk {}

thread_local! {
    static DESK: RefCell<Option<Arc<Desk>>> = const { RefCell::new(None) };
}

/// Calls `work` with each of `0..parts`, on this thread and on at most `helpers` others. `spawn`
/// gives a [`Helper`] to a thread. Returns false, and calls nothing, if the thread is already
/// inside of a call, or about to end.
pub(super) fn run(
    parts: usize,
    work: &(dyn Fn(usize) + Sync),
    helpers: usize,
    spawn: impl Fn(Helper),
) -> bool {
    let Some(desk) = Desk::of_this_thread() else { return false };
    if desk.gate.load(Acquire) != 0 {
        return false;
    }
    // SAFETY: only the lifetime changes. `Closing` closes the gate and waits for the helpers inside
    // before this function returns or unwinds, and helpers use the work only inside.
    let work = unsafe {
        std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work)
    };
    let call = Call { parts, helpers, work };
    // SAFETY: this thread owns the desk. The gate is closed, and nobody is inside.
    unsafe { *desk.call.get() = Some(call) };
    desk.next.store(0, Relaxed);
    let closing = Closing(&desk);
    // Helpers of an earlier call that start now help with this one. The order matters: either this
    // thread sees that such a helper has started, or the helper sees that the gate is open.
    desk.gate.store(OPEN, SeqCst);
    for _ in desk.awaited.load(SeqCst)..helpers {
        desk.awaited.fetch_add(1, SeqCst);
        spawn(Helper(Arc::clone(&desk)));
    }
    desk.take_parts(call);
    drop(closing);
    let panic = desk.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
    match panic {
        Some(panic) => resume_unwind(panic),
        None => true,
    }
}

/// A thread that helps with the current call of another one.
pub(super) struct Helper(Arc<Desk>);

impl Helper {
    /// Takes parts until none is left. Does nothing if there is no call, or if it has enough
    /// helpers. A panic goes to the caller.
    pub(super) fn help(self) {
        let desk = &*self.0;
        desk.awaited.fetch_sub(1, SeqCst);
        let enter = |gate: usize| (gate & OPEN != 0).then_some(gate + 1);
        let Ok(before) = desk.gate.fetch_update(SeqCst, Relaxed, enter) else { return };
        // SAFETY: this thread is inside, so the owner does not write the call.
        let call = unsafe { *desk.call.get() };
        if let Some(call) = call.filter(|call| before & !OPEN < call.helpers) {
            let done = catch_unwind(AssertUnwindSafe(|| desk.take_parts(call)));
            if let Err(panic) = done {
                desk.next.store(NO_MORE, Relaxed);
                desk.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
            }
        }
        // The last one leaves after the gate was closed: the owner may be asleep.
        if desk.gate.fetch_sub(1, AcqRel) == 1 {
            desk.owner.unpark();
        }
    }
}

impl Desk {
    fn of_this_thread() -> Option<Arc<Desk>> {
        let forks = pool::forks();
        let own = |slot: &RefCell<Option<Arc<Desk>>>| {
            let mut slot = slot.borrow_mut();
            if let Some(desk) = slot.as_ref().filter(|desk| desk.forks == forks) {
                return Arc::clone(desk);
            }
            Arc::clone(slot.insert(Arc::new(Desk {
                gate: AtomicUsize::new(0),
                call: UnsafeCell::new(None),
                next: AtomicUsize::new(NO_MORE),
                awaited: AtomicUsize::new(0),
                panic: Mutex::new(None),
                owner: thread::current(),
                forks,
            })))
        };
        DESK.try_with(own).ok()
    }

    /// Each thread takes the next part when it is free.
    fn take_parts(&self, call: Call) {
        while let part = self.next.fetch_add(1, Relaxed)
            && part < call.parts
        {
            (call.work)(part);
        }
    }
}

/// Closes the gate on drop, also when a part panics, and waits until nobody is inside.
struct Closing<'a>(&'a Desk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let desk = self.0;
        desk.next.store(NO_MORE, Relaxed);
        desk.gate.fetch_and(!OPEN, AcqRel);
        let alone = || desk.gate.load(Acquire) == 0;
        linger(alone);
        while !alone() {
            thread::park();
        }
    }
}

/// Spin-waits until `done` returns true or [`LINGER`] has passed. The caller waits for the helpers
/// to finish, and a helper waits for the next call. Both usually take less time than waking a
/// sleeping thread. If there are more threads than cores, it returns at once.
pub(super) fn linger(done: impl Fn() -> bool) {
    if is_crowded() {
        return;
    }
    let start = Instant::now();
    while !done() && start.elapsed() < LINGER {
        (0..32).for_each(|_| std::hint::spin_loop());
    }
}

/// Returns the number of helpers that this thread has asked for and that have not started yet.
#[cfg(test)]
pub(super) fn awaited() -> usize {
    Desk::of_this_thread().map_or(0, |desk| desk.awaited.load(SeqCst))
}
