//! `tril_indices` and `triu_indices`: the positions of the entries of a triangle.

use inlay_core::{DType, Dim, Error, Integer, Meta, Result, Triangle};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::create::on;
use crate::array::{Array, sizes};
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::{Tensor, device};

declare! {
    /// Rows and columns of the entries on and below a diagonal, as a ``[2, N]`` tensor.
    ///
    /// Args:
    ///     row, col: the sizes of the matrix; `col` is `row` by default.
    ///     offset: the entries are those with ``c - r <= offset``. Any integer is valid: past the
    ///         edges it selects all of them or none.
    ///     dtype: an integer dtype that holds the largest index; int64 by default.
    ///     device: ``'cpu'`` or ``'gpu'``; by default the one of ``inlay.set_device``.
    ///
    /// Returns:
    ///     A Tensor: rows first, columns second, in row-major order of the entries.
    ///
    /// Raises:
    ///     ValueError: a negative size, a dtype that can't hold the largest index, more entries
    ///         than can be addressed.
    ///     TypeError: sizes that are not integers, a dtype that is not an integer dtype.
    ///
    /// >>> import inlay
    /// >>> inlay.tril_indices(3, 3, -1)
    /// Tensor([[1, 2, 2],
    ///         [0, 0, 1]], shape=[2, 3], dtype=int64)
    TRIL_INDICES = "tril_indices"(
        row: Extent, col: MaybeExtent = None, offset: Bound = 0, dtype: MaybeType = None, *,
        device: MaybeDevice = None
    )
        -> Tensor
        => {
            let (col, dtype) = (col.unwrap_or(row), dtype.unwrap_or(DType::I64));
            on(device, || Tensor::tril_indices(row, col, offset, dtype))
        };

    /// Rows and columns of the entries on and above a diagonal, as a ``[2, N]`` tensor.
    ///
    /// Like ``tril_indices``, but of the entries with ``c - r >= offset``.
    ///
    /// >>> import inlay
    /// >>> inlay.triu_indices(2, 3, 1)
    /// Tensor([[0, 0, 1],
    ///         [1, 2, 2]], shape=[2, 3], dtype=int64)
    TRIU_INDICES = "triu_indices"(
        row: Extent, col: MaybeExtent = None, offset: Bound = 0, dtype: MaybeType = None, *,
        device: MaybeDevice = None
    )
        -> Tensor
        => {
            let (col, dtype) = (col.unwrap_or(row), dtype.unwrap_or(DType::I64));
            on(device, || Tensor::triu_indices(row, col, offset, dtype))
        };
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct TriangleIndices {
    triangle: Triangle,
    row: i64,
    col: i64,
    offset: i64,
    dtype: DType,
}

impl TriangleIndices {
    /// Returns the numbers of rows and columns, or an error if one is negative.
    fn rows_and_cols(&self) -> Result<(usize, usize)> {
        let size = |arg: &'static str, value: i64| {
            usize::try_from(value).map_err(|_| Error::Argument {
                op: self.name(),
                arg,
                got: value.to_string(),
                expected: "0 or more".into(),
            })
        };
        Ok((size("row", self.row)?, size("col", self.col)?))
    }
}

impl Op for TriangleIndices {
    type Inputs = Inputs<0>;
    type Found = (usize, usize);
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        match self.triangle {
            Triangle::Lower => &TRIL_INDICES,
            Triangle::Upper => &TRIU_INDICES,
        }
    }

    fn infer(&self, _: &[Meta; 0]) -> Result<Inferred<(usize, usize)>> {
        let op = self.name();
        let (rows, cols) = self.rows_and_cols()?;
        let Some((_, most)) = self.dtype.integer_range() else {
            let expected = "an integer dtype";
            return Err(Error::DType { op, arg: "dtype", got: self.dtype, expected });
        };
        let len = device::triangle_len(self.triangle, rows, cols, self.offset);
        let largest = device::triangle_largest(self.triangle, rows, cols, self.offset);
        if len > 0 && largest as i128 > most {
            let expected = format!("a dtype that holds {largest}, the largest index");
            return Err(Error::Argument {
                op,
                arg: "dtype",
                got: self.dtype.to_string(),
                expected,
            });
        }
        let too_large = || Error::TooLarge { op, shape: vec![2, usize::MAX] };
        let len = usize::try_from(len).map_err(|_| too_large())?;
        let shape = smallvec![Dim::Known(2), Dim::Known(len)];
        Inferred::new(Meta { dtype: self.dtype, shape }, (rows, cols))
    }

    fn run(
        &self,
        _: &[&Array; 0],
        inferred: &Inferred<(usize, usize)>,
        _out: Out,
    ) -> Result<Array> {
        let to = Array::new(self.name(), self.dtype, &sizes(&inferred.meta.shape))?;
        device::triangle_indices(&to, self.triangle, inferred.found, self.offset)?;
        Ok(to)
    }
}

impl Tensor {
    /// Returns the rows and columns, `[2, n]`, of the entries of a `row x col` matrix with
    /// `c - r <= offset`, in row-major order.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let at = Tensor::tril_indices(2, 2, 0, DType::I64)?;
    /// assert_eq!(at.to_vec::<i64>()?, [0, 1, 1, 0, 0, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Negative sizes, a dtype that is not an integer or can't hold the largest index.
    #[track_caller]
    pub fn tril_indices(
        row: impl Integer,
        col: impl Integer,
        offset: impl Integer,
        dtype: DType,
    ) -> Result<Tensor> {
        let (row, col, offset) = (row.to_i64(), col.to_i64(), offset.to_i64());
        apply(TriangleIndices { triangle: Triangle::Lower, row, col, offset, dtype }, &[])
    }

    /// Like [`Tensor::tril_indices`], but of the entries with `c - r >= offset`.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let places = Tensor::triu_indices(2, 2, 0, DType::I64)?;
    /// assert_eq!(places.to_vec::<i64>()?, [0, 0, 1, 0, 1, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::tril_indices`].
    #[track_caller]
    pub fn triu_indices(
        row: impl Integer,
        col: impl Integer,
        offset: impl Integer,
        dtype: DType,
    ) -> Result<Tensor> {
        let (row, col, offset) = (row.to_i64(), col.to_i64(), offset.to_i64());
        apply(TriangleIndices { triangle: Triangle::Upper, row, col, offset, dtype }, &[])
    }
}
