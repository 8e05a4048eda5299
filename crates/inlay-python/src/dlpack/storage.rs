//! The storages of torch tensors: objects of their own, whose memory other threads may replace.

use std::cell::RefCell;

use inlay::Tensor;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::error::Class;

/// The memory of a tensor of PyTorch.
pub(super) struct Storage {
    pub(super) object: Py<PyAny>,
    start: usize,
    size: usize,
}

impl Storage {
    pub(super) fn of(tensor: &Bound<'_, PyAny>) -> PyResult<Self> {
        let storage = tensor.call_method0(intern!(tensor.py(), "untyped_storage"))?;
        let (start, size) = place(&storage)?;
        Ok(Storage { object: storage.unbind(), start, size })
    }

    /// Whether all elements of a tensor are in this memory.
    pub(super) fn holds(&self, tensor: &Tensor) -> bool {
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

/// The address and the size of a storage.
fn place(storage: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
    let py = storage.py();
    let start = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
    let size = storage.call_method0(intern!(py, "nbytes"))?.extract()?;
    Ok((start, size))
}

/// The storages that a call uses. While the GIL is released, another thread may resize one of them,
/// which frees its memory. Nothing can prevent that, but the call can tell it afterwards.
#[derive(Default)]
pub(crate) struct Watch(RefCell<Vec<Storage>>);

impl Watch {
    pub(super) fn add(&self, storage: Storage) {
        self.0.borrow_mut().push(storage);
    }

    /// Fails if the memory of a storage is not the one that it had when the call began.
    pub(crate) fn expect_unchanged(&self, py: Python<'_>, op: &'static str) -> PyResult<()> {
        if self.0.borrow().iter().all(|storage| storage.is_unchanged(py)) {
            return Ok(());
        }
        let text = format!(
            "{op}: another thread resized a tensor during the call, which freed the memory that the \
             call used: its result is dropped, and what it wrote in place may be lost"
        );
        Err(Class::Runtime.error(py, text))
    }
}
