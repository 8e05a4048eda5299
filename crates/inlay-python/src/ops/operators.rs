//! The operators `+ - * /`, their in-place forms, and comparisons.

use inlay::Tensor;
use numpy::PyUntypedArray;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyRange, PyTuple};
use pyo3::{Borrowed, intern};

use super::{Given, Object};
use crate::convert::Call;
use crate::numpy::is_scalar;
use crate::tensor::PyTensor;

/// An operation on two tensors.
type Binary = fn(&Tensor, &Tensor) -> inlay::Result<Tensor>;

/// The other operand of an operator. If the object is none, the conversion fails, and PyO3 makes
/// the operator return `NotImplemented`. Then Python asks the class of the object.
struct Operand<'a, 'py>(Borrowed<'a, 'py, PyAny>);

impl<'a, 'py> FromPyObject<'a, 'py> for Operand<'a, 'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match is_operand(&object) {
            true => Ok(Operand(object)),
            false => Err(PyTypeError::new_err("not an operand")),
        }
    }
}

/// Whether operators take an object as the other operand: a tensor, an array, a number or a list.
///
/// An array of another library is an operand, too. Its conversion may fail, with an error that says
/// what to do. But if its class has `__array_ufunc__`, it has operators that take arrays and tensors
/// of other libraries, like those of pandas, and they are preferred.
pub(crate) fn is_operand(object: &Bound<'_, PyAny>) -> bool {
    if object.is_exact_instance_of::<PyTensor>()
        || object.is_instance_of::<PyUntypedArray>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyComplex>()
        || is_scalar(object)
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyRange>()
    {
        return true;
    }
    if object.is_none() {
        return false;
    }
    let (py, class) = (object.py(), object.get_type());
    // An error counts as a missing attribute: it is raised by code of a strange metaclass.
    let has = |name| class.hasattr(name).unwrap_or(false);
    !has(intern!(py, "__array_ufunc__")) && Call::is_foreign(object)
}

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
    fn __add__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "add", |x, y| x.add(y), slf.as_any(), &other.0)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "add", |x, y| x.add(y), &other.0, slf.as_any())
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "subtract", |x, y| x.subtract(y), slf.as_any(), &other.0)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "subtract", |x, y| x.subtract(y), &other.0, slf.as_any())
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "multiply", |x, y| x.multiply(y), slf.as_any(), &other.0)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "multiply", |x, y| x.multiply(y), &other.0, slf.as_any())
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "divide", |x, y| x.divide(y), slf.as_any(), &other.0)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> Given<'py> {
        binary(slf.py(), "divide", |x, y| x.divide(y), &other.0, slf.as_any())
    }

    fn __iadd__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> PyResult<()> {
        in_place(slf, "add", |x, y| x.add_(y).map(drop), &other.0)
    }

    fn __isub__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> PyResult<()> {
        in_place(slf, "subtract", |x, y| x.subtract_(y).map(drop), &other.0)
    }

    fn __imul__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> PyResult<()> {
        in_place(slf, "multiply", |x, y| x.multiply_(y).map(drop), &other.0)
    }

    fn __itruediv__<'py>(slf: &Bound<'py, Self>, other: Operand<'_, 'py>) -> PyResult<()> {
        in_place(slf, "divide", |x, y| x.divide_(y).map(drop), &other.0)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let call = Call::new(py, "negative");
        call.run(self.inner().numel(), || self.inner().negative()).map(PyTensor::new)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: Operand<'_, 'py>,
        comparison: CompareOp,
    ) -> Given<'py> {
        let (op, make): (_, Binary) = match comparison {
            CompareOp::Eq => ("equal", |x, y| x.equal(y)),
            CompareOp::Ne => ("not_equal", |x, y| x.not_equal(y)),
            CompareOp::Lt => ("less_than", |x, y| x.less_than(y)),
            CompareOp::Le => ("less_equal", |x, y| x.less_equal(y)),
            CompareOp::Gt => ("greater_than", |x, y| x.greater_than(y)),
            CompareOp::Ge => ("greater_equal", |x, y| x.greater_equal(y)),
        };
        binary(slf.py(), op, make, slf.as_any(), &other.0)
    }
}
