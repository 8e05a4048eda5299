//! `zeros`, `ones`, `full`, `arange`.

use inlay::{DType, Scalar, Tensor};
use pyo3::prelude::*;

use super::{Maybe, Object};
use crate::convert::Call;
use crate::device::on;
use crate::dtype;
use crate::tensor::PyTensor;

/// A tensor of zeros.
///
/// >>> import inlay
/// >>> inlay.zeros([2])
/// Tensor([0., 0.], shape=[2], dtype=float32)
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, device=None), text_signature = "(shape, dtype='float32', *, device=None)")]
pub(super) fn zeros<'py>(
    py: Python<'py>,
    shape: Object<'_, 'py>,
    dtype: Maybe<'_, 'py>,
    device: Maybe<'_, 'py>,
) -> PyResult<PyTensor> {
    constant(py, "zeros", Tensor::zeros, shape, [dtype, device])
}

/// A tensor of ones.
///
/// >>> import inlay
/// >>> inlay.ones([2], dtype='int64')
/// Tensor([1, 1], shape=[2], dtype=int64)
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, device=None), text_signature = "(shape, dtype='float32', *, device=None)")]
pub(super) fn ones<'py>(
    py: Python<'py>,
    shape: Object<'_, 'py>,
    dtype: Maybe<'_, 'py>,
    device: Maybe<'_, 'py>,
) -> PyResult<PyTensor> {
    constant(py, "ones", Tensor::ones, shape, [dtype, device])
}

fn constant<'py>(
    py: Python<'py>,
    op: &'static str,
    make: fn(&[usize], DType) -> inlay::Result<Tensor>,
    shape: Object<'_, 'py>,
    [dtype, device]: [Maybe<'_, 'py>; 2],
) -> PyResult<PyTensor> {
    let call = Call::new(py, op);
    let shape = call.sizes("shape", shape)?;
    let dtype = dtype::parse_optional(op, Call::some(dtype))?.unwrap_or(DType::F32);
    let size = count(&shape);
    call.run(size, on(op, device, move || make(&shape, dtype))?).map(PyTensor::new)
}

/// A tensor of one value.
///
/// Without a dtype it is int64, float32, complex64 or bool, by the kind of number.
///
/// >>> import inlay
/// >>> inlay.full([2], 7)
/// Tensor([7, 7], shape=[2], dtype=int64)
#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype=None, *, device=None))]
pub(super) fn full<'py>(
    py: Python<'py>,
    shape: Object<'_, 'py>,
    fill_value: Object<'_, 'py>,
    dtype: Maybe<'_, 'py>,
    device: Maybe<'_, 'py>,
) -> PyResult<PyTensor> {
    let call = Call::new(py, "full");
    let shape = call.sizes("shape", shape)?;
    let value = call.scalar("fill_value", fill_value)?;
    let dtype = dtype::parse_optional("full", Call::some(dtype))?.unwrap_or(value.dtype());
    let size = count(&shape);
    let make = on("full", device, move || Tensor::full(&shape, value, dtype))?;
    call.run(size, make).map(PyTensor::new)
}

/// ``start, start + step, ...`` before `end`; with one argument, ``0, 1, ...`` before it.
///
/// Without a dtype it is int64 if all three are integers, else float32.
///
/// >>> import inlay
/// >>> inlay.arange(1, 6, 2)
/// Tensor([1, 3, 5], shape=[3], dtype=int64)
#[pyfunction]
#[pyo3(signature = (start=None, end=None, step=None, dtype=None, *, device=None))]
#[pyo3(text_signature = "(start=0, end=None, step=1, dtype=None, *, device=None)")]
pub(super) fn arange<'py>(
    py: Python<'py>,
    start: Maybe<'_, 'py>,
    end: Maybe<'_, 'py>,
    step: Maybe<'_, 'py>,
    dtype: Maybe<'_, 'py>,
    device: Maybe<'_, 'py>,
) -> PyResult<PyTensor> {
    let call = Call::new(py, "arange");
    let number = |arg, object: Maybe<'_, 'py>, default: i64| match Call::some(object) {
        Some(object) => call.scalar(arg, object),
        None => Ok(Scalar::from(default)),
    };
    let step = number("step", step, 1)?;
    let (start, end) = match Call::some(end) {
        Some(_) => (number("start", start, 0)?, number("end", end, 0)?),
        None => (Scalar::from(0), number("end", start, 0)?),
    };
    let natural = [start, end, step].map(Scalar::dtype).into_iter().fold(DType::I64, DType::max);
    let dtype = dtype::parse_optional("arange", Call::some(dtype))?.unwrap_or(natural);
    let make = on("arange", device, move || Tensor::arange(start, end, step, dtype))?;
    call.run(usize::MAX, make).map(PyTensor::new)
}

fn count(shape: &[usize]) -> usize {
    shape.iter().fold(1, |n, &size| n.saturating_mul(size))
}
