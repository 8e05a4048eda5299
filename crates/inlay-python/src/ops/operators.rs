//! The operators `+ - * /`, their in-place forms, and comparisons.

use inlay::Tensor;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;

use super::{Given, Object};
use crate::convert::Call;
use crate::tensor::PyTensor;

/// An operation on two tensors.
type Binary = fn(&Tensor, &Tensor) -> inlay::Result<Tensor>;

/// Applies `make`. If one operand is a number or a list of them and the other is a tensor or array,
/// the number or list takes the dtype of the other.
fn binary<'py>(
    py: Python<'py>,
    op: &'static str,
    make: Binary,
    x: Object<'_, 'py>,
    y: Object<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, op);
    let (x, y) = if Call::yields(x, y) {
        let y = call.array("y", y)?;
        (call.values("x", x, y.dtype())?, y)
    } else {
        let x = call.array("x", x)?;
        let y = call.values("y", y, x.dtype())?;
        (x, y)
    };
    let result = call.run(x.numel().max(y.numel()), || make(&x, &y))?;
    call.give(result)
}

/// Writes the result of `x (op) y` into `x`. It must have the shape and dtype of `x`.
fn in_place<'py>(
    x: &Bound<'py, PyTensor>,
    op: &'static str,
    write: fn(&Tensor, &Tensor) -> inlay::Result<()>,
    y: Object<'_, 'py>,
) -> PyResult<()> {
    let mut call = Call::new(x.py(), op);
    let target = call.target("x", x.as_any())?;
    let y = call.values("y", y, target.dtype())?;
    call.run(target.numel(), || write(&target, &y))
}

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

    fn __iadd__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> PyResult<()> {
        in_place(slf, "add", |x, y| x.add_(y).map(drop), other)
    }

    fn __isub__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> PyResult<()> {
        in_place(slf, "subtract", |x, y| x.subtract_(y).map(drop), other)
    }

    fn __imul__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> PyResult<()> {
        in_place(slf, "multiply", |x, y| x.multiply_(y).map(drop), other)
    }

    fn __itruediv__<'py>(slf: &Bound<'py, Self>, other: Object<'_, 'py>) -> PyResult<()> {
        in_place(slf, "divide", |x, y| x.divide_(y).map(drop), other)
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
