//! Guards: buffers that this thread must not write for a while.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

use crate::memory::Buffer;

/// The number of guards of all threads. While it is 0, a check is one load.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The guarded buffers of this thread. The innermost guard comes last.
    static GUARDED: RefCell<Vec<Guarded>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of a guard.
struct Guarded {
    guard: usize,
    buffer: usize,
    /// Whether code has asked to write it.
    wanted: bool,
}

/// Makes buffers read-only on this thread, and notes which of them are wanted for writing.
pub(crate) struct Guard {
    number: usize,
    /// Kept, so that no other buffer gets the number of one of these.
    _buffers: SmallVec<[Buffer; 4]>,
    _this_thread: PhantomData<*const ()>,
}

impl Guard {
    pub(crate) fn new(buffers: impl IntoIterator<Item = Buffer>) -> Guard {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let buffers: SmallVec<[Buffer; 4]> = buffers.into_iter().collect();
        let entry = |buffer: &Buffer| Guarded { guard: number, buffer: buffer.id(), wanted: false };
        GUARDED.with_borrow_mut(|guarded| guarded.extend(buffers.iter().map(entry)));
        GUARDS.fetch_add(1, Ordering::Relaxed);
        Guard { number, _buffers: buffers, _this_thread: PhantomData }
    }

    /// Whether a buffer was wanted for writing since the guard was made.
    pub(crate) fn was_wanted(&self, buffer: &Buffer) -> bool {
        let ours = |entry: &Guarded| entry.guard == self.number && entry.buffer == buffer.id();
        let is_ours = |entry: &&Guarded| ours(entry);
        GUARDED.with_borrow(|all| all.iter().filter(is_ours).any(|entry| entry.wanted))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        GUARDED.with_borrow_mut(|guarded| guarded.retain(|entry| entry.guard != self.number));
        GUARDS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a guard of this thread has the buffer. The innermost one notes that it was wanted for
/// writing.
#[inline]
pub(crate) fn is_guarded(buffer: &Buffer) -> bool {
    // A guard of this thread was counted by this thread, so the order of other threads' counts does
    // not matter.
    GUARDS.load(Ordering::Relaxed) > 0 && note(buffer.id())
}

#[cold]
fn note(buffer: usize) -> bool {
    GUARDED.with_borrow_mut(|guarded| {
        let found = guarded.iter_mut().rfind(|entry| entry.buffer == buffer);
        found.map(|entry| entry.wanted = true).is_some()
    })
}
