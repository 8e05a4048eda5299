//! The errors that cause other errors.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::Error;

/// The error that caused another one. Clones share it.
///
/// It is not an error itself, so that [`source`](std::error::Error::source) returns the cause and
/// not this handle, and the cause can be downcast.
#[derive(Debug)]
pub struct Cause<E: ?Sized = dyn std::error::Error + Send + Sync>(Arc<E>);

impl<E: ?Sized> Clone for Cause<E> {
    fn clone(&self) -> Self {
        Cause(Arc::clone(&self.0))
    }
}

impl<E: ?Sized> Deref for Cause<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.0
    }
}

impl<E: fmt::Display + ?Sized> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E> From<E> for Cause<E> {
    fn from(error: E) -> Self {
        Cause(Arc::new(error))
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Cause {
    fn from(error: E) -> Self {
        Cause(Arc::new(error))
    }
}

impl PartialEq for Cause<Error> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl PartialEq for Cause<std::io::Error> {
    /// Errors of the system are equal if they have the same kind and code.
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.raw_os_error() == other.raw_os_error()
    }
}

impl PartialEq for Cause {
    /// Errors of other libraries can't be compared, so only handles to one error are equal.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
