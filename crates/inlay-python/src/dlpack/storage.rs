//! The storages of torch tensors: objects of their own, whose memory can be replaced at any time.

use std::cell::{Cell, RefCell};
use std::fmt::Display;

use inlay::Tensor;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::error::{Class, type_name};

/// The memory of a tensor of PyTorch.
pub(super) struct Storage {
    object: Py<PyAny>,
    start: usize,
    size: usize,
}

impl Storage {
    /// The storage of a tensor, or `None` for an object that has none or does not show it.
    pub(super) fn of(tensor: &Bound<'_, PyAny>) -> Option<Self> {
        let storage = tensor.call_method0(intern!(tensor.py(), "untyped_storage")).ok()?;
        let (start, size) = place(&storage).ok()?;
        Some(Storage { object: storage.unbind(), start, size })
    }

    /// The object, which keeps the memory alive unless it is replaced.
    pub(super) fn object(&self, py: Python<'_>) -> Py<PyAny> {
        self.object.clone_ref(py)
    }

    /// Whether all memory of the tensor was freed.
    pub(super) fn is_freed(&self, tensor: &Bound<'_, PyAny>) -> bool {
        let elements = || tensor.call_method0(intern!(tensor.py(), "numel"))?.extract::<usize>();
        self.size == 0 && elements().is_ok_and(|elements| elements > 0)
    }

    /// Whether all elements of a tensor are in this memory.
    fn holds(&self, tensor: &Tensor) -> bool {
        let layout = tensor.layout();
        let Some(used) = layout.extent(tensor.dtype().size()) else { return false };
        // The address of the first element minus its place in the layout.
        let start = (tensor.data_ptr() as usize).wrapping_sub(layout.offset());
        let low = start.wrapping_add(used.start).checked_sub(self.start);
        used.is_empty()
            || low.and_then(|low| low.checked_add(used.len())).is_some_and(|end| end <= self.size)
    }

    /// Whether the memory is still the same.
    fn is_unchanged(&self, py: Python<'_>) -> bool {
        place(self.object.bind(py)).is_ok_and(|place| place == (self.start, self.size))
    }
}

/// The address and the size of a storage. If the memory is shared until it is written, torch makes a
/// copy of it for this question.
fn place(storage: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
    let py = storage.py();
    let start = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
    let size = storage.call_method0(intern!(py, "nbytes"))?.extract()?;
    Ok((start, size))
}

/// The error for a tensor whose storage does not hold its elements.
#[cold]
pub(super) fn too_small(tensor: &Bound<'_, PyAny>, subject: impl Display) -> PyErr {
    let kind = type_name(tensor);
    let text = format!(
        "{subject} is a {kind} whose storage is smaller than its shape: it was resized or freed"
    );
    Class::Type.error(tensor.py(), text)
}

/// The storages that a call uses. `resize_` and `share_memory_` replace the memory of a storage and
/// free the old one. Other threads can call them while the GIL is released, and so can Python code
/// that the conversion of an argument runs. A storage could refuse that only for the rest of its
/// life, as after `Tensor.numpy()`. So a call compares its storages when it begins, and when it has
/// run without the GIL.
#[derive(Default)]
pub(crate) struct Watch {
    storages: RefCell<Vec<Storage>>,
    was_replaced: Cell<bool>,
}

impl Watch {
    /// Whether the storage of a tensor, if it has one, holds its elements. It is then watched.
    pub(super) fn admits(&self, tensor: &Tensor, storage: Option<Storage>) -> bool {
        let Some(storage) = storage else { return true };
        let holds = storage.holds(tensor);
        if holds {
            self.storages.borrow_mut().push(storage);
        }
        holds
    }

    /// Forgets the storages, because the tensors over them are not used.
    pub(crate) fn clear(&self) {
        self.storages.borrow_mut().clear();
    }

    fn is_unchanged(&self, py: Python<'_>) -> bool {
        self.storages.borrow().iter().all(|storage| storage.is_unchanged(py))
    }

    /// Fails if a storage was replaced since it was admitted. Nothing was read or written.
    pub(crate) fn before(&self, py: Python<'_>, op: &'static str) -> PyResult<()> {
        if self.is_unchanged(py) {
            return Ok(());
        }
        let text = format!(
            "{op}: the memory of a tensor was replaced (by resize_, share_memory_ or the like) while \
             other arguments were converted"
        );
        Err(Class::Replaced.error(py, text))
    }

    /// Fails if a storage was replaced while the GIL was released.
    pub(crate) fn after(&self, py: Python<'_>, op: &'static str) -> PyResult<()> {
        if self.is_unchanged(py) {
            return Ok(());
        }
        self.was_replaced.set(true);
        let text = format!(
            "{op}: another thread replaced the memory of a tensor (by resize_, share_memory_ or the \
             like) during the call: the result is dropped, and what the call wrote in place may be \
             lost"
        );
        Err(Class::Replaced.error(py, text))
    }

    /// Whether a storage was replaced during the call, which may have written.
    pub(crate) fn was_replaced(&self) -> bool {
        self.was_replaced.get()
    }
}
