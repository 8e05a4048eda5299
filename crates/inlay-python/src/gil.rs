//! Work without the GIL, of which the garbage collector must know.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::Python;

/// The number of threads inside of [`detached`]. It changes only while the GIL is held, so it is
/// constant while the garbage collector looks for garbage.
static DETACHED: AtomicUsize = AtomicUsize::new(0);

/// Calls `work` with the GIL released.
///
/// Use this instead of `Python::detach`. While a thread uses tensors without the GIL, reference
/// counts of the graph may change at any time, so the garbage collector must not rely on them.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    struct Attached;
    impl Drop for Attached {
        fn drop(&mut self) {
            DETACHED.fetch_sub(1, Ordering::Relaxed);
        }
    }
    DETACHED.fetch_add(1, Ordering::Relaxed);
    // Dropped after the GIL is held again, also after a panic.
    let _attached = Attached;
    #[expect(clippy::disallowed_methods, reason = "this is the one place that counts")]
    py.detach(work)
}

/// Whether a thread uses tensors without the GIL.
pub(crate) fn is_any_detached() -> bool {
    DETACHED.load(Ordering::Relaxed) > 0
}
