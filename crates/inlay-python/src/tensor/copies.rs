//! Copies of tensors: `copy`, `deepcopy` and pickle.

use inlay::{DType, Layout, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::PyTensor;
use crate::error::{Class, raise};
use crate::foreign;
use crate::gil::detached;

impl PyTensor {
    /// Makes a contiguous copy, with the GIL released. It is recorded for the gradient.
    fn fresh(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let copied = detached(py, || self.inner.copy());
        copied.map(PyTensor::new).map_err(|error| raise(py, &error))
    }

    /// Makes a copy of a leaf that is another leaf. `with_grad` copies the collected gradient, too.
    fn another_leaf(&self, py: Python<'_>, with_grad: bool) -> PyResult<PyTensor> {
        let copied = detached(py, || {
            let leaf = self.inner.detach().copy()?;
            leaf.set_stop_gradient(self.inner.stop_gradient())?;
            if with_grad && let Some(grad) = self.inner.grad() {
                leaf.set_grad(Some(&grad.copy()?))?;
            }
            Ok(leaf)
        });
        copied.map(PyTensor::new).map_err(|error: inlay::Error| raise(py, &error))
    }
}

#[pymethods]
impl PyTensor {
    /// A new tensor with a copy of the elements. Gradients flow through the copy.
    fn copy(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.fresh(py)
    }

    /// A new tensor with a copy of the elements. Gradients flow through the copy.
    fn clone(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.fresh(py)
    }

    // The copy of a leaf is a leaf of its own. The copy of a computed tensor shares its history.
    fn __copy__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        if self.inner.is_leaf() { self.another_leaf(py, false) } else { self.fresh(py) }
    }

    // As in PyTorch and Paddle, a computed tensor is refused, because its history is not copied.
    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        memo: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, key) = (slf.py(), slf.as_ptr() as usize);
        if let Some(copied) = memo.get_item(key)? {
            return Ok(copied);
        }
        if !slf.get().inner.is_leaf() {
            let text = "deepcopy: the tensor was computed from others that require a gradient; \
                        copy t.detach(), or use t.clone(), which keeps the history";
            return Err(Class::Runtime.error(py, text));
        }
        let copied = Bound::new(py, slf.get().another_leaf(py, true)?)?.into_any();
        memo.set_item(key, &copied)?;
        Ok(copied)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        crate::numpy::expect_elements(py, &self.inner, "pickle")?;
        let bytes = foreign::to_bytes(py, &self.inner).map_err(|error| raise(py, &error))?;
        let shape = PyTuple::new(py, self.inner.shape())?;
        let rebuild = py.import("inlay._inlay")?.getattr("_rebuild")?;
        let dtype = self.inner.dtype().name();
        if self.inner.stop_gradient() {
            return (rebuild, (bytes, dtype, shape)).into_pyobject(py);
        }
        (rebuild, (bytes, dtype, shape, false)).into_pyobject(py)
    }
}

/// Makes a tensor from the parts that pickle has stored. The tensor is a leaf.
#[pyfunction]
#[pyo3(name = "_rebuild", signature = (data, dtype, shape, stop_gradient=true))]
pub(crate) fn rebuild(
    py: Python<'_>,
    data: &Bound<'_, PyBytes>,
    dtype: &str,
    shape: Vec<usize>,
    stop_gradient: bool,
) -> PyResult<PyTensor> {
    let damaged = |what: String| Class::Value.error(py, format!("pickle: {what}"));
    let dtype: DType = dtype.parse().map_err(|_| damaged(format!("no dtype {dtype:?}")))?;
    let layout = Layout::contiguous("pickle", &shape, dtype.size());
    let layout = layout.map_err(|error| raise(py, &error))?;
    let (have, need) = (data.as_bytes().len(), layout.numel() * dtype.size());
    if have != need {
        return Err(damaged(format!("{have} bytes, expected {need}")));
    }
    // The copy makes the tensor writable: the memory of `bytes` objects is read-only.
    let shared = foreign::over_bytes(data, layout, dtype).and_then(|tensor| tensor.copy());
    let leaf = |tensor: Tensor| {
        tensor.set_stop_gradient(stop_gradient)?;
        Ok(PyTensor::new(tensor))
    };
    shared.and_then(leaf).map_err(|error| raise(py, &error))
}
