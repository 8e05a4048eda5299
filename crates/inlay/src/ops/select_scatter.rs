//! `select_scatter`: a tensor to one position of an axis.

use inlay_core::{Dim, Dims, Error, Layout, Meta, Result, Slice, axis_of};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::region::{Region, Write};
use super::slice_scatter::SliceScatter;
use crate::Tensor;
use crate::funnel::{apply, apply_in_place};

/// One position of an axis; the region lacks that axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SelectScatter {
    /// The axis.
    pub axis: i64,
    /// The position, negative from the end.
    pub index: i64,
}

/// The position on `axis` of size `size` that a plain number names.
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
    fn read_name(&self) -> &'static str {
        "select"
    }

    fn write_name(&self) -> (&'static str, &'static str, &'static str) {
        ("select_scatter", "x", "values")
    }

    fn shape(&self, op: &'static str, arg: &'static str, x: &Meta) -> Result<Dims> {
        x.expect_rank_at_least(op, arg, 1)?;
        let axis = axis_of(op, "axis", self.axis, x.rank())?;
        if let Dim::Known(size) = x.shape[axis] {
            position_of(op, self.index, axis, size)?;
        }
        let mut shape = x.shape.clone();
        shape.remove(axis);
        Ok(shape)
    }

    fn layout(&self, x: &Layout) -> Result<Layout> {
        let axis = axis_of(self.read_name(), "axis", self.axis, x.rank())?;
        let position = position_of(self.read_name(), self.index, axis, x.shape()[axis])?;
        Ok(x.select(axis, position))
    }

    fn rest(&self, x: &Layout) -> Result<SmallVec<[Layout; 4]>> {
        let axis = axis_of(self.read_name(), "axis", self.axis, x.rank())?;
        let position = position_of(self.read_name(), self.index, axis, x.shape()[axis])? as i64;
        SliceScatter::new(self.axis, Slice::new(position, position + 1, 1)).rest(x)
    }
}

impl Tensor {
    /// A copy in which one position of an axis is `values`, which lacks that axis.
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, an axis or a position out of range.
    #[track_caller]
    pub fn select_scatter(&self, values: &Tensor, at: SelectScatter) -> Result<Tensor> {
        apply(Write(at), &[self, values])
    }

    /// [`Tensor::select_scatter`] in place.
    ///
    /// # Errors
    /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
    #[track_caller]
    pub fn select_scatter_(&self, values: &Tensor, at: SelectScatter) -> Result<&Self> {
        apply_in_place(Write(at), self, &[values]).map(|()| self)
    }
}
