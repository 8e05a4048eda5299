//! Tensors from `bytes` objects, and `bytes` from tensors.
#![expect(unsafe_code, reason = "memory of Python objects comes as raw pointers")]

use std::ptr::NonNull;

use inlay::{DType, Layout, Result, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A read-only tensor over the bytes of a `bytes` object.
pub(crate) fn over_bytes(
    data: &Bound<'_, PyBytes>,
    layout: Layout,
    dtype: DType,
) -> Result<Tensor> {
    let bytes = data.as_bytes();
    let ptr = NonNull::from(bytes).cast();
    let owner = data.clone().unbind();
    // SAFETY: a `bytes` object never changes, and the owner keeps it alive.
    unsafe { Tensor::from_foreign(ptr, bytes.len(), layout, dtype, false, owner) }
}

/// The elements of a tensor in row-major order.
pub(crate) fn to_bytes<'py>(py: Python<'py>, tensor: &Tensor) -> Result<Bound<'py, PyBytes>> {
    let fresh = py.detach(|| tensor.cpu()?.copy())?;
    let len = fresh.numel() * fresh.dtype().size();
    if len == 0 {
        return Ok(PyBytes::new(py, &[]));
    }
    // SAFETY: a fresh copy is contiguous, so this many initialized bytes start here. No other
    // handle can write them.
    Ok(PyBytes::new(py, unsafe { std::slice::from_raw_parts(fresh.data_ptr(), len) }))
}
