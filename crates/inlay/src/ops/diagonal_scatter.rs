//! `diagonal_scatter`: a tensor onto the diagonal of two axes. And `diagonal`, which reads it.

use inlay_core::{Dims, Error, Layout, Meta, Result, axis_of};
use serde::{Deserialize, Serialize};

use super::region::{Read, Region, Write};
use crate::Tensor;
use crate::funnel::{apply, apply_in_place};

/// The diagonal of two axes.
///
/// ```
/// use inlay::DiagonalScatter;
///
/// let above = DiagonalScatter { offset: 1, ..DiagonalScatter::default() };
/// let batched = DiagonalScatter { axis1: -2, axis2: -1, ..DiagonalScatter::default() };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct DiagonalScatter {
    /// How far above the main diagonal, or if negative below.
    pub offset: i64,
    /// The axis of the rows.
    pub axis1: i64,
    /// The axis of the columns.
    pub axis2: i64,
}

impl Default for DiagonalScatter {
    fn default() -> Self {
        DiagonalScatter { offset: 0, axis1: 0, axis2: 1 }
    }
}

impl DiagonalScatter {
    fn axes(&self, op: &'static str, rank: usize) -> Result<(usize, usize)> {
        let axis1 = axis_of(op, "axis1", self.axis1, rank)?;
        let axis2 = axis_of(op, "axis2", self.axis2, rank)?;
        if axis1 == axis2 {
            let (got, expected) = (self.axis2.to_string(), "another axis than axis1".into());
            return Err(Error::Argument { op, arg: "axis2", got, expected });
        }
        Ok((axis1, axis2))
    }
}

impl Region for DiagonalScatter {
    fn read_name(&self) -> &'static str {
        "diagonal"
    }

    fn write_name(&self) -> (&'static str, &'static str, &'static str) {
        ("diagonal_scatter", "input", "src")
    }

    fn shape(&self, op: &'static str, arg: &'static str, x: &Meta) -> Result<Dims> {
        x.expect_rank_at_least(op, arg, 2)?;
        let (axis1, axis2) = self.axes(op, x.rank())?;
        Ok(x.diagonal(self.offset, axis1, axis2))
    }

    fn layout(&self, x: &Layout) -> Result<Layout> {
        let (axis1, axis2) = self.axes(self.read_name(), x.rank())?;
        Ok(x.diagonal(self.offset, axis1, axis2))
    }
}

impl Tensor {
    /// A copy whose diagonal `at` is `src`: the two axes dropped, the diagonal's length last.
    ///
    /// ```
    /// # use inlay::{DiagonalScatter, Tensor};
    /// let x = Tensor::from_slice(&[0i32; 6], &[2, 3])?;
    /// let src = Tensor::from_slice(&[1, 2], &[2])?;
    /// let above = DiagonalScatter { offset: 1, ..DiagonalScatter::default() };
    /// assert_eq!(x.diagonal_scatter(&src, above)?.to_vec::<i32>()?, [0, 1, 0, 0, 0, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, fewer than two dimensions, axes that are out of range or
    /// the same.
    #[track_caller]
    pub fn diagonal_scatter(&self, src: &Tensor, at: DiagonalScatter) -> Result<Tensor> {
        apply(Write(at), &[self, src])
    }

    /// [`Tensor::diagonal_scatter`] in place.
    ///
    /// # Errors
    /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
    #[track_caller]
    pub fn diagonal_scatter_(&self, src: &Tensor, at: DiagonalScatter) -> Result<&Self> {
        apply_in_place(Write(at), self, &[src]).map(|()| self)
    }

    /// The diagonal `at`, as a view.
    ///
    /// # Errors
    /// Fewer than two dimensions, axes that are out of range or the same.
    #[track_caller]
    pub fn diagonal(&self, at: DiagonalScatter) -> Result<Tensor> {
        apply(Read(at), &[self])
    }
}
