//! Copies of tensors: `copy`, `deepcopy` and pickle.

use inlay::{DType, Layout, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::PyTensor;
use crate::error::{Class, raise};
use crate::foreign;
use crate::gil::detached;

impl PyTensor {
    /// Makes a contiguous copy, with the GIL released.
    fn fresh(&self, py: Python<'_>) -> PyResult<Tensor> {
        detached(py, || self.inner.copy()).map_err(|error| raise(py, &error))
    }
}

#[pymethods]
impl PyTensor {
    /// A new tensor with a copy of the elements.
    fn copy(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.fresh(py).map(PyTensor::new)
    }

    /// A new tensor with a copy of the elements.
    fn clone(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.fresh(py).map(PyTensor::new)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.fresh(py).map(PyTensor::new)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyDict>) -> PyResult<PyTensor> {
        self.fresh(py).map(PyTensor::new)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        crate::numpy::expect_elements(py, &self.inner, "pickle")?;
        let bytes = foreign::to_bytes(py, &self.inner).map_err(|error| raise(py, &error))?;
        let shape = PyTuple::new(py, self.inner.shape())?;
        let rebuild = py.import("inlay._inlay")?.getattr("_rebuild")?;
        (rebuild, (bytes, self.inner.dtype().name(), shape)).into_pyobject(py)
    }
}

/// Makes a tensor from the parts that pickle has stored.
#[pyfunction]
#[pyo3(name = "_rebuild")]
pub(crate) fn rebuild(
    py: Python<'_>,
    data: &Bound<'_, PyBytes>,
    dtype: &str,
    shape: Vec<usize>,
) -> PyResult<PyTensor> {
    let damaged = |what: String| Class::Value.error(py, format!("pickle: {what}"));
    let dtype: DType = dtype.parse().map_err(|()| damaged(format!("no dtype {dtype:?}")))?;
    let layout = Layout::contiguous("pickle", &shape, dtype.size());
    let layout = layout.map_err(|error| raise(py, &error))?;
    let (have, need) = (data.as_bytes().len(), layout.numel() * dtype.size());
    if have != need {
        return Err(damaged(format!("{have} bytes, expected {need}")));
    }
    // The copy makes the tensor writable: the memory of `bytes` objects is read-only.
    let shared = foreign::over_bytes(data, layout, dtype).and_then(|tensor| tensor.copy());
    shared.map(PyTensor::new).map_err(|error| raise(py, &error))
}
