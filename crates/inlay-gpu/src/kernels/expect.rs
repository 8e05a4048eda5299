//! Checks of the arguments of kernels. Operations have checked them before. If another caller has
//! not, it gets an error instead of a wrong result.

use inlay_core::{DType, Error, Layout, Result, ShapeText};

use super::Positions;
use crate::View;

/// Fails unless the shape of `arg` is as expected.
pub(super) fn shape(
    op: &'static str,
    arg: &'static str,
    got: &[usize],
    expected: &[usize],
) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    let (got, expected) = (ShapeText::of(got), ShapeText::of(expected));
    Err(Error::Shape { op, arg, got, expected })
}

/// Fails unless `arg` has the dtype and the shape of `to`.
pub(super) fn like(op: &'static str, arg: &'static str, got: View<'_>, to: View<'_>) -> Result<()> {
    dtype(op, arg, got, to.dtype)?;
    shape(op, arg, got.layout.shape(), to.layout.shape())
}

/// Fails unless the dtype of `arg` is as expected.
pub(super) fn dtype(
    op: &'static str,
    arg: &'static str,
    got: View<'_>,
    expected: DType,
) -> Result<()> {
    if got.dtype == expected {
        return Ok(());
    }
    Err(Error::DType { op, arg, got: got.dtype, expected: expected.name() })
}

/// Fails unless the layout has the axis.
pub(super) fn axis(op: &'static str, axis: usize, layout: &Layout) -> Result<()> {
    let rank = layout.rank();
    if axis < rank {
        return Ok(());
    }
    Err(Error::Axis { op, arg: "axis", axis: axis as i64, rank })
}

/// Fails unless `part` has the rank of `whole` and is not larger on any axis other than `axis`.
pub(super) fn within(
    op: &'static str,
    arg: &'static str,
    part: &Layout,
    whole: &Layout,
    axis: usize,
) -> Result<()> {
    let mut sizes = part.shape().iter().zip(whole.shape()).enumerate();
    if part.rank() == whole.rank() && sizes.all(|(k, (part, whole))| k == axis || part <= whole) {
        return Ok(());
    }
    shape(op, arg, part.shape(), whole.shape())
}

/// Fails unless `arg` has the expected number of elements.
pub(super) fn elements(
    op: &'static str,
    arg: &'static str,
    got: usize,
    expected: usize,
) -> Result<()> {
    shape(op, arg, &[got], &[expected])
}

/// Fails unless the positions were checked against an axis that is not larger than `size`.
pub(super) fn positions(op: &'static str, index: &Positions, size: usize) -> Result<()> {
    if index.size() <= size {
        return Ok(());
    }
    let (got, expected) = (format!("an index of an axis of {}", index.size()), size.to_string());
    Err(Error::Argument { op, arg: "index", got, expected })
}
