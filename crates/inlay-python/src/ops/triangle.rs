//! `tril_indices`, `triu_indices`, `tril`, `triu`.

use inlay::{DType, Tensor};
use pyo3::prelude::*;

use super::{Given, Maybe, Object, operation};
use crate::convert::Call;
use crate::device::on;
use crate::dtype;
use crate::tensor::PyTensor;

/// Rows and columns of the entries on and below a diagonal, as a ``[2, N]`` tensor.
///
/// Args:
///     row, col: the sizes of the matrix; `col` is `row` by default.
///     offset: the entries are those with ``c - r <= offset``. Any integer will do: past the edges it
///         gives all of them or none.
///     dtype: an integer dtype that holds the largest index; int64 by default.
///     device: ``'cpu'`` or ``'gpu'``; without one, where ``inlay.set_device`` says.
///
/// Returns:
///     A Tensor: rows first, columns second, in row-major order of the entries.
///
/// Raises:
///     ValueError: a negative size, a dtype that can't hold the largest index, more entries than can
///         be addressed.
///     TypeError: sizes that are no integers, a dtype that is none.
///
/// >>> import inlay
/// >>> inlay.tril_indices(3, 3, -1)
/// Tensor([[1, 2, 2],
///         [0, 0, 1]], shape=[2, 3], dtype=int64)
#[pyfunction]
#[pyo3(signature = (row, col=None, offset=None, dtype=None, *, device=None))]
#[pyo3(text_signature = "(row, col=None, offset=0, dtype=None, *, device=None)")]
pub(super) fn tril_indices<'py>(
    py: Python<'py>,
    row: Object<'_, 'py>,
    col: Maybe<'_, 'py>,
    offset: Maybe<'_, 'py>,
    dtype: Maybe<'_, 'py>,
    device: Maybe<'_, 'py>,
) -> PyResult<PyTensor> {
    indices(py, "tril_indices", Tensor::tril_indices, [Some(row), col, offset, dtype, device])
}

/// Rows and columns of the entries on and above a diagonal, as a ``[2, N]`` tensor.
///
/// As ``tril_indices``, of the entries with ``c - r >= offset``.
///
/// >>> import inlay
/// >>> inlay.triu_indices(2, 3, 1)
/// Tensor([[0, 0, 1],
///         [1, 2, 2]], shape=[2, 3], dtype=int64)
#[pyfunction]
#[pyo3(signature = (row, col=None, offset=None, dtype=None, *, device=None))]
#[pyo3(text_signature = "(row, col=None, offset=0, dtype=None, *, device=None)")]
pub(super) fn triu_indices<'py>(
    py: Python<'py>,
    row: Object<'_, 'py>,
    col: Maybe<'_, 'py>,
    offset: Maybe<'_, 'py>,
    dtype: Maybe<'_, 'py>,
    device: Maybe<'_, 'py>,
) -> PyResult<PyTensor> {
    indices(py, "triu_indices", Tensor::triu_indices, [Some(row), col, offset, dtype, device])
}

fn indices<'py>(
    py: Python<'py>,
    op: &'static str,
    make: fn(i64, i64, i64, DType) -> inlay::Result<Tensor>,
    [row, col, offset, dtype, device]: [Maybe<'_, 'py>; 5],
) -> PyResult<PyTensor> {
    let call = Call::new(py, op);
    let row = call.integer_or("row", row, 0)?;
    let col = call.integer_or("col", Call::some(col), row)?;
    let offset = call.bound_or("offset", offset, 0)?;
    let dtype = dtype::parse_optional(op, Call::some(dtype))?.unwrap_or(DType::I64);
    // Small matrices have few entries; whether others do is not known before.
    let size = (row.max(0) as usize).saturating_mul(col.max(0) as usize);
    let make = on(op, device, move || make(row, col, offset, dtype))?;
    call.run(size, make).map(PyTensor::new)
}

operation! {
    /// x, and 0 above a diagonal of its last two axes.
    ///
    /// >>> import inlay
    /// >>> inlay.tril([[1, 2], [3, 4]])
    /// array([[1, 0],
    ///        [3, 4]])
    tril(x, diagonal: Maybe<'_, 'py>, name: Maybe<'_, 'py>)
    [diagonal=None, name=None]
    "(x, diagonal=0, name=None)"
    "($self, diagonal=0, name=None)"
    => (|py, x, diagonal, name| keep(py, "tril", Tensor::tril, x, diagonal, name))
}

operation! {
    /// x, and 0 below a diagonal of its last two axes.
    ///
    /// >>> import inlay
    /// >>> inlay.triu([[1, 2], [3, 4]])
    /// array([[1, 2],
    ///        [0, 4]])
    triu(x, diagonal: Maybe<'_, 'py>, name: Maybe<'_, 'py>)
    [diagonal=None, name=None]
    "(x, diagonal=0, name=None)"
    "($self, diagonal=0, name=None)"
    => (|py, x, diagonal, name| keep(py, "triu", Tensor::triu, x, diagonal, name))
}

fn keep<'py>(
    py: Python<'py>,
    op: &'static str,
    make: fn(&Tensor, i64) -> inlay::Result<Tensor>,
    x: Object<'_, 'py>,
    diagonal: Maybe<'_, 'py>,
    name: Maybe<'_, 'py>,
) -> Given<'py> {
    let mut call = Call::new(py, op);
    call.name(name)?;
    let diagonal = call.bound_or("diagonal", diagonal, 0)?;
    let x = call.array("x", x)?;
    let kept = call.run(x.numel(), || make(&x, diagonal))?;
    call.give(kept)
}
