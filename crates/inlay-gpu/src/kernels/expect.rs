//! Checks of what kernels rely on. Operations have checked their arguments before; a caller that has
//! not gets an error, never a wrong result.

use inlay_core::{DType, Error, Layout, Result, ShapeText};

use super::Positions;
use crate::View;

/// Fails unless `got` is the shape that is expected of `arg`.
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

/// Fails unless `arg` has the shape and the dtype of `to`.
pub(super) fn like(op: &'static str, arg: &'static str, got: View<'_>, to: View<'_>) -> Result<()> {
    dtype(op, arg, got, to.dtype)?;
    shape(op, arg, got.layout.shape(), to.layout.shape())
}

/// Fails unless `arg` has the dtype that is expected.
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

/// Fails unless `part` has the rank of `whole`, and is no larger on any axis but `axis`.
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

/// Fails unless there are as many elements as expected.
pub(super) fn elements(
    op: &'static str,
    arg: &'static str,
    got: usize,
    expected: usize,
) -> Result<()> {
    shape(op, arg, &[got], &[expected])
}

/// Fails unless all positions are on an axis of `size`.
pub(super) fn positions(op: &'static str, index: &Positions, size: usize) -> Result<()> {
    if index.size() <= size {
        return Ok(());
    }
    let (got, expected) = (format!("an index of an axis of {}", index.size()), size.to_string());
    Err(Error::Argument { op, arg: "index", got, expected })
}
