//! `select_scatter`: writes a tensor to one position of an axis.

use inlay_core::{Dim, Dims, Error, Integer, Layout, Meta, Result, Slice, axis_of};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::region::{Region, WriteRegion};
use super::slice_scatter::rest;
use crate::Tensor;
use crate::array::known;
use crate::declare::{Operation, declare};
use crate::funnel::{apply, apply_in_place};

declare! {
    /// Write `values`, which lacks `axis`, to one position of that axis.
    ///
    /// >>> import inlay
    /// >>> inlay.select_scatter([[1, 2], [3, 4]], [8, 9], 1, -1)
    /// array([[1, 8],
    ///        [3, 9]])
    SELECT_SCATTER = "select_scatter"(
        x: Tensor, values | src: Like, axis: Int, index: Bound, name: Label = None
    )
        gradients [x, values]
        batch Axes
        twin out => out.apply(WriteRegion(SelectScatter { axis, index }), &[x, values]);

    SELECT = "select"(x: Tensor);
}

/// One position of an axis. The region lacks that axis.
///
/// ```
/// use inlay::SelectScatter;
///
/// assert_eq!(SelectScatter::from((1, -1)), SelectScatter { axis: 1, index: -1 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SelectScatter {
    /// The axis.
    pub axis: i64,
    /// The position; negative ones count from the end.
    pub index: i64,
}

/// The axis and the position.
impl<A: Integer, P: Integer> From<(A, P)> for SelectScatter {
    fn from((axis, index): (A, P)) -> Self {
        SelectScatter { axis: axis.to_i64(), index: index.to_i64() }
    }
}

/// Returns the position that `index` names on `axis` of `size`, counted from the front.
pub(super) fn position_of(op: &'static str, index: i64, axis: usize, size: usize) -> Result<usize> {
    let from_front = if index < 0 { index.checked_add_unsigned(size as u64) } else { Some(index) };
    match from_front.and_then(|position| usize::try_from(position).ok()) {
        Some(position) if position < size => Ok(position),
        _ => {
            let (position, value) = (vec![], index.into());
            Err(Error::Index { op, arg: "index", position, value, axis, size })
        }
    }
}

impl Region for SelectScatter {
    /// The axis, and the position if the size is known.
    type Found = (usize, Dim);

    fn reader(&self) -> &'static Operation {
        &SELECT
    }

    fn writer(&self) -> &'static Operation {
        &SELECT_SCATTER
    }

    fn shape(&self, op: &'static str, arg: &'static str, x: &Meta) -> Result<(Dims, Self::Found)> {
        x.expect_rank_at_least(op, arg, 1)?;
        let axis = axis_of(op, "axis", self.axis, x.rank())?;
        let position = match x.shape[axis] {
            Dim::Known(size) => Dim::Known(position_of(op, self.index, axis, size)?),
            open => open,
        };
        let mut shape = x.dims();
        shape.remove(axis);
        Ok((shape, (axis, position)))
    }

    fn layout(&self, &(axis, position): &Self::Found, x: &Layout) -> Layout {
        x.select(axis, known(position))
    }

    fn rest(&self, &(axis, position): &Self::Found, x: &Layout) -> SmallVec<[Layout; 4]> {
        let position = known(position) as i64;
        rest(&[(axis, Slice::new(position, position + 1, 1))], x)
    }
}

impl Tensor {
    /// Returns a copy in which one position of an axis is `values`, which lacks that axis.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// let y = x.select_scatter(&Tensor::from([8, 9]), (1, 0))?;
    /// assert_eq!(y.to_vec::<i32>()?, [8, 2, 9, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, an axis or a position out of range.
    #[track_caller]
    pub fn select_scatter(&self, values: &Tensor, at: impl Into<SelectScatter>) -> Result<Tensor> {
        apply(WriteRegion(at.into()), &[self, values])
    }

    /// The in-place version of [`Tensor::select_scatter`].
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// x.select_scatter_(&Tensor::from([8, 9]), (0, -1))?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 2, 8, 9]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::select_scatter`]; also memory that is read-only or overlaps itself.
    /// After an error, nothing was written.
    #[track_caller]
    pub fn select_scatter_(&self, values: &Tensor, at: impl Into<SelectScatter>) -> Result<&Self> {
        apply_in_place(WriteRegion(at.into()), &[self, values]).map(|_| self)
    }
}
