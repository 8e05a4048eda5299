//! `+ - * /` and comparisons as operators.

use inlay::Tensor;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;

use super::pointwise::{Binary, binary};
use super::{Given, Object};
use crate::convert::Call;
use crate::tensor::PyTensor;

#[pymethods]
impl PyTensor {
    fn __add__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "add", Tensor::add, slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "add", Tensor::add, other, slf.as_any())
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "subtract", Tensor::subtract, slf.as_any(), other)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "subtract", Tensor::subtract, other, slf.as_any())
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "multiply", Tensor::multiply, slf.as_any(), other)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "multiply", Tensor::multiply, other, slf.as_any())
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "divide", Tensor::divide, slf.as_any(), other)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "divide", Tensor::divide, other, slf.as_any())
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let call = Call::new(py, "negative");
        call.run(self.inner().numel(), || self.inner().negative()).map(PyTensor::new)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: Object<'_, 'py>,
        comparison: CompareOp,
    ) -> Given<'py> {
        let (op, make): (_, Binary) = match comparison {
            CompareOp::Eq => ("equal", Tensor::equal),
            CompareOp::Ne => ("not_equal", Tensor::not_equal),
            CompareOp::Lt => ("less_than", Tensor::less_than),
            CompareOp::Le => ("less_equal", Tensor::less_equal),
            CompareOp::Gt => ("greater_than", Tensor::greater_than),
            CompareOp::Ge => ("greater_equal", Tensor::greater_equal),
        };
        binary(slf.py(), op, make, slf.as_any(), other)
    }
}
