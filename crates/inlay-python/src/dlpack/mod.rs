//! Exchange of tensors with other libraries through DLPack: by capsules, and by the tables of C
//! functions that newer libraries offer.
#![expect(unsafe_code, reason = "managed tensors come as raw pointers")]

mod capsule;
mod classes;
pub(crate) mod exchange;
mod own;
mod storage;

use std::fmt;
use std::mem::ManuallyDrop;

use inlay::Tensor;
use inlay::interop::dlpack::{CPU as CPU_TYPE, Form, Managed};
use pyo3::prelude::*;

use crate::error::{Class, raise};

pub(crate) use capsule::{Request, export};
pub(crate) use exchange::Table;
pub(crate) use own::own_table;
pub(crate) use storage::Watch;

/// The CPU in DLPack: device type and device number.
pub(crate) const CPU: (i32, i32) = (CPU_TYPE, 0);

/// What an imported tensor is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Reading. The exporter may copy the elements.
    Read,
    /// Writing in place. The exporter must share its memory.
    Write,
}

/// What an object is passed for: the operation and the argument, with which messages begin.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) op: &'static str,
    pub(crate) arg: &'static str,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.op, self.arg)
    }
}

/// Imports an object whose class has a table or `__dlpack__`, or a capsule. A storage that may be
/// resized is added to `watch`.
pub(crate) fn import(
    object: &Bound<'_, PyAny>,
    subject: Subject,
    purpose: Purpose,
    watch: &Watch,
) -> PyResult<Tensor> {
    match Table::of(object) {
        // `__dlpack__` refuses a tensor that requires a gradient. A table does not look.
        Some(table) if !table.requires_gradient(object) => {
            table.import(object, subject, purpose, watch)
        }
        _ => capsule::import(object, &subject.to_string(), purpose, watch),
    }
}

/// Makes a tensor over the memory of a managed tensor of another library. It keeps another object
/// alive too.
fn adopt<F: Form>(
    py: Python<'_>,
    managed: Managed<F>,
    keep: Option<Py<PyAny>>,
) -> PyResult<Tensor> {
    let unknown = managed.dtype().is_none();
    managed.into_tensor_with(|managed| WithGil::new(managed, keep)).map_err(|error| match unknown {
        true => Class::Type.error(py, error.to_string()),
        false => raise(py, &error),
    })
}

/// A managed tensor whose deleter runs with the GIL held, because many deleters free Python
/// objects.
struct WithGil<F: Form>(ManuallyDrop<(Managed<F>, Option<Py<PyAny>>)>);

impl<F: Form> WithGil<F> {
    fn new(managed: Managed<F>, keep: Option<Py<PyAny>>) -> Self {
        WithGil(ManuallyDrop::new((managed, keep)))
    }
}

impl<F: Form> Drop for WithGil<F> {
    fn drop(&mut self) {
        // `try_attach` fails at interpreter shutdown. The memory then leaks until the process ends.
        // If the GIL is held already, it takes a few nanoseconds.
        // SAFETY: `drop` runs once, and the value is not used after this.
        Python::try_attach(|_| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}
