//! Conversion between tensors and `bytes` objects.
#![expect(unsafe_code, reason = "memory of Python objects comes as raw pointers")]

use std::ptr::NonNull;

use inlay::{DType, Layout, Result, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::gil::detached;

/// Returns a read-only tensor over the memory of a `bytes` object.
pub(crate) fn over_bytes(
    data: &Bound<'_, PyBytes>,
    layout: Layout,
    dtype: DType,
) -> Result<Tensor> {
    let bytes = data.as_bytes();
    let ptr = NonNull::from(bytes).cast();
    let owner = data.clone().unbind();
    // SAFETY: pointer and length come from one slice. A `bytes` object is immutable, the tensor is
    // read-only, and `owner` keeps the object alive. `from_foreign` checks the layout.
    unsafe { Tensor::from_foreign(ptr, bytes.len(), layout, dtype, false, owner) }
}

/// Returns the elements of a tensor in row-major order.
pub(crate) fn to_bytes<'py>(py: Python<'py>, tensor: &Tensor) -> Result<Bound<'py, PyBytes>> {
    let fresh = detached(py, || tensor.cpu()?.copy())?;
    let len = fresh.numel() * fresh.dtype().size();
    if len == 0 {
        return Ok(PyBytes::new(py, &[]));
    }
    // SAFETY: `copy` returns a contiguous CPU tensor, so `len` initialized bytes start at
    // `data_ptr`. `fresh` is the only handle to them, so nothing writes them.
    Ok(PyBytes::new(py, unsafe { std::slice::from_raw_parts(fresh.data_ptr(), len) }))
}
