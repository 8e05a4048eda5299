//! `diagonal_scatter`: writes a tensor onto the diagonal of two axes. Also `diagonal`, which reads
//! it.

use inlay_core::{Dims, Error, Integer, Layout, Meta, Result, axis_of};
use serde::{Deserialize, Serialize};

use super::region::{ReadRegion, Region, WriteRegion};
use crate::Tensor;
use crate::declare::{Operation, declare};
use crate::funnel::{apply, apply_in_place};

declare! {
    /// Write `src` onto a diagonal of `input`.
    ///
    /// Args:
    ///     input: the tensor to start from, of at least two dimensions.
    ///     src: of input's dtype, and of the shape of ``diagonal(input, offset, axis1, axis2)``:
    ///         the two axes are dropped, and the diagonal's length comes last.
    ///     offset: above the main diagonal if positive, below if negative. Past the edge the
    ///         diagonal is empty, and `src` must be empty too.
    ///     axis1, axis2: the axes of the rows and of the columns.
    ///     name: the label of the node in a static graph.
    ///
    /// Returns:
    ///     A fresh tensor, or a NumPy array if no argument was a Tensor.
    ///
    /// Raises:
    ///     ValueError: a shape that does not fit, fewer than two dimensions, equal axes.
    ///     IndexError: an axis out of range.
    ///     TypeError: dtypes that differ.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.diagonal_scatter(np.zeros((3, 3), dtype=int), [1, 2], offset=1)
    /// array([[0, 1, 0],
    ///        [0, 0, 2],
    ///        [0, 0, 0]])
    DIAGONAL_SCATTER = "diagonal_scatter"(
        input: Tensor, src | y: Like, offset: Bound = 0, axis1: Int = 0, axis2: Int = 1,
        name: Label = None
    )
        gradients [input, src]
        batch Axes
        twin out => out.apply(WriteRegion(Diagonal { offset, axis1, axis2 }), &[input, src]);

    /// The diagonal of two axes, as a view. Both axes are dropped, and the diagonal's length comes
    /// last.
    ///
    /// >>> import inlay
    /// >>> inlay.diagonal([[1, 2, 3], [4, 5, 6]], offset=1)
    /// array([2, 6])
    DIAGONAL = "diagonal"(
        x: Tensor, offset: Bound = 0, axis1: Int = 0, axis2: Int = 1, name: Label = None
    )
        -> View
        gradients [x]
        batch Axes
        => x.diagonal(Diagonal { offset, axis1, axis2 });
}

/// The diagonal of two axes.
///
/// ```
/// use inlay::Diagonal;
///
/// let above = Diagonal { offset: 1, ..Diagonal::default() };
/// assert_eq!(above, Diagonal::from(1));
/// let batched = Diagonal { axis1: -2, axis2: -1, ..Diagonal::default() };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Diagonal {
    /// How far the diagonal is above the main diagonal, or if negative below it.
    pub offset: i64,
    /// The axis of the rows.
    pub axis1: i64,
    /// The axis of the columns.
    pub axis2: i64,
}

/// The diagonal that [`Tensor::diagonal_scatter`] writes to.
pub type DiagonalScatter = Diagonal;

impl Default for Diagonal {
    fn default() -> Self {
        Diagonal { offset: 0, axis1: 0, axis2: 1 }
    }
}

/// The diagonal of the first two axes with this offset.
impl<T: Integer> From<T> for Diagonal {
    fn from(offset: T) -> Self {
        Diagonal { offset: offset.to_i64(), ..Diagonal::default() }
    }
}

impl Region for Diagonal {
    /// Both axes, counted from the front.
    type Found = (usize, usize);

    fn reader(&self) -> &'static Operation {
        &DIAGONAL
    }

    fn writer(&self) -> &'static Operation {
        &DIAGONAL_SCATTER
    }

    fn shape(&self, op: &'static str, arg: &'static str, x: &Meta) -> Result<(Dims, Self::Found)> {
        x.expect_rank_at_least(op, arg, 2)?;
        let axis1 = axis_of(op, "axis1", self.axis1, x.rank())?;
        let axis2 = axis_of(op, "axis2", self.axis2, x.rank())?;
        if axis1 == axis2 {
            let (got, expected) = (self.axis2.to_string(), "another axis than axis1".into());
            return Err(Error::Argument { op, arg: "axis2", got, expected });
        }
        Ok((x.diagonal(self.offset, axis1, axis2), (axis1, axis2)))
    }

    fn layout(&self, &(axis1, axis2): &Self::Found, x: &Layout) -> Layout {
        x.diagonal(self.offset, axis1, axis2)
    }
}

impl Tensor {
    /// Returns a copy whose diagonal `at` is `src`. In the shape of `src` the two axes are dropped,
    /// and the diagonal's length comes last.
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
    pub fn diagonal_scatter(&self, src: &Tensor, at: impl Into<Diagonal>) -> Result<Tensor> {
        apply(WriteRegion(at.into()), &[self, src])
    }

    /// The in-place version of [`Tensor::diagonal_scatter`].
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::zeros([2, 2], DType::I32)?;
    /// x.diagonal_scatter_(&Tensor::from([1, 2]), 0)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 0, 0, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::diagonal_scatter`]; also memory that is read-only or overlaps
    /// itself. After an error, nothing was written.
    #[track_caller]
    pub fn diagonal_scatter_(&self, src: &Tensor, at: impl Into<Diagonal>) -> Result<&Self> {
        apply_in_place(WriteRegion(at.into()), &[self, src]).map(|_| self)
    }

    /// Returns the diagonal `at` as a view.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.diagonal(1)?.to_vec::<i32>()?, [2, 6]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fewer than two dimensions, axes that are out of range or the same.
    #[track_caller]
    pub fn diagonal(&self, at: impl Into<Diagonal>) -> Result<Tensor> {
        apply(ReadRegion(at.into()), &[self])
    }
}
