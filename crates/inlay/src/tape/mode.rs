//! Whether this thread records operations for gradients.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Whether operations on this thread are recorded.
///
/// ```
/// assert!(inlay::is_grad_enabled());
/// ```
pub fn is_grad_enabled() -> bool {
    ENABLED.get()
}

/// A guard. While it exists, operations of this thread are not recorded.
///
/// ```
/// # use inlay::{DType, NoGrad, Tensor};
/// let x = Tensor::ones(&[2], DType::F32)?.with_gradient()?;
/// let y = {
///     let _off = NoGrad::new();
///     x.add(&x)?
/// };
/// assert!(y.stop_gradient());
/// # Ok::<(), inlay::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "recording resumes when the guard is dropped; bind it to a name such as `_off`"]
pub struct NoGrad {
    before: bool,
    /// Makes it `!Send`: it restores the mode of its own thread.
    thread: PhantomData<*const ()>,
}

impl NoGrad {
    /// Stops recording until the guard is dropped.
    ///
    /// ```
    /// # use inlay::{NoGrad, is_grad_enabled};
    /// let off = NoGrad::new();
    /// assert!(!is_grad_enabled());
    /// drop(off);
    /// assert!(is_grad_enabled());
    /// ```
    #[expect(clippy::new_without_default, reason = "a guard is made to be held, not by default")]
    pub fn new() -> Self {
        NoGrad::set(false)
    }

    /// Sets the mode until the guard is dropped.
    pub(crate) fn set(enabled: bool) -> Self {
        NoGrad { before: ENABLED.replace(enabled), thread: PhantomData }
    }

    /// Sets the mode without a guard, for other languages. Returns the old mode.
    ///
    /// ```
    /// # use inlay::{NoGrad, is_grad_enabled};
    /// let before = NoGrad::switch(false);
    /// assert!(before && !is_grad_enabled());
    /// NoGrad::switch(before);
    /// ```
    pub fn switch(enabled: bool) -> bool {
        ENABLED.replace(enabled)
    }
}

impl Drop for NoGrad {
    fn drop(&mut self) {
        ENABLED.set(self.before);
    }
}
