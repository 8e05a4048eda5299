//! `tril_indices` and `triu_indices`: where the entries of a triangle stand.

use inlay_core::{DType, Dim, Error, Meta, Result, Triangle};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct TriangleIndices {
    triangle: Triangle,
    row: i64,
    col: i64,
    offset: i64,
    dtype: DType,
}

impl TriangleIndices {
    /// Rows and columns, checked.
    fn sizes(&self) -> Result<(usize, usize)> {
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
    fn name(&self) -> &'static str {
        match self.triangle {
            Triangle::Lower => "tril_indices",
            Triangle::Upper => "triu_indices",
        }
    }

    fn infer(&self, _inputs: &[Meta]) -> Result<Meta> {
        let op = self.name();
        let (rows, cols) = self.sizes()?;
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
        Ok(Meta { dtype: self.dtype, shape: smallvec![Dim::Known(2), Dim::Known(len)] })
    }

    fn run(&self, _inputs: &[&Array], _out: Out) -> Result<Array> {
        let (rows, cols) = self.sizes()?;
        let len = device::triangle_len(self.triangle, rows, cols, self.offset) as usize;
        let to = Array::new(self.name(), self.dtype, &[2, len])?;
        device::triangle_indices(&to, self.triangle, (rows, cols), self.offset)?;
        Ok(to)
    }

    fn is_differentiable(&self) -> bool {
        false
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|_| Ok(None))
    }
}

impl Tensor {
    /// Rows and columns, `[2, n]`, of the entries of a `row x col` matrix with
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
    pub fn tril_indices(row: i64, col: i64, offset: i64, dtype: DType) -> Result<Tensor> {
        apply(TriangleIndices { triangle: Triangle::Lower, row, col, offset, dtype }, &[])
    }

    /// As [`Tensor::tril_indices`], of the entries with `c - r >= offset`.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn triu_indices(row: i64, col: i64, offset: i64, dtype: DType) -> Result<Tensor> {
        apply(TriangleIndices { triangle: Triangle::Upper, row, col, offset, dtype }, &[])
    }
}
