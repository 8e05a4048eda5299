//! A block: the part of a tensor that has a given shape, from its beginning or further along one
//! axis. What gradients read and write where users' slices would need sizes as numbers.

use inlay_core::{Dim, Dims, Layout, Meta, Result, Slice};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::region::{ReadRegion, Region, WriteRegion};
use super::slice_scatter::{SLICE, SLICE_SCATTER, Slices, rest};
use crate::Tensor;
use crate::declare::Operation;
use crate::device::Comb;
use crate::funnel::apply;

/// A part of a shape, after as many positions of one axis as other parts have.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Block {
    shape: Dims,
    axis: usize,
    /// The sizes on the axis of what comes before.
    before: Dims,
}

impl Block {
    /// The first part of a tensor that has `shape`.
    pub(super) fn first(shape: &[Dim]) -> Self {
        Block { shape: Dims::from_slice(shape), axis: 0, before: Dims::new() }
    }

    /// The part of `shape` after others that have the sizes `before` on `axis`.
    pub(super) fn after(before: &[Dim], axis: usize, shape: &[Dim]) -> Self {
        let (shape, before) = (Dims::from_slice(shape), Dims::from_slice(before));
        Block { shape, axis, before }
    }

    /// Whether it begins where the tensor does.
    pub(super) fn is_first(&self) -> bool {
        self.before.is_empty()
    }

    /// The same as slices, for sizes that are known.
    fn slices(&self) -> Slices {
        let size = |dim: &Dim| dim.known().unwrap_or(0) as i64;
        let start = self.before.iter().map(size).fold(0, i64::saturating_add);
        self.shape.iter().enumerate().fold(Slices::default(), |at, (axis, dim)| {
            let start = if axis == self.axis { start } else { 0 };
            at.and(axis as i64, Slice::new(start, start.saturating_add(size(dim)), 1))
        })
    }
}

impl Region for Block {
    /// The block as slices, if all sizes are known.
    type Found = <Slices as Region>::Found;

    fn reader(&self) -> &'static Operation {
        &SLICE
    }

    fn writer(&self) -> &'static Operation {
        &SLICE_SCATTER
    }

    fn shape(&self, op: &'static str, arg: &'static str, x: &Meta) -> Result<(Dims, Self::Found)> {
        x.expect_rank(op, arg, self.shape.len())?;
        let certain = x.shape.iter().chain(&self.sizes()).all(|dim| dim.known().is_some());
        if !certain || self.shape.is_empty() {
            return Ok((self.shape.clone(), SmallVec::new()));
        }
        let (shape, found) = self.slices().shape(op, arg, x)?;
        inlay_core::expect_shape(op, arg, &shape, &self.shape)?;
        Ok((shape, found))
    }

    fn layout(&self, found: &Self::Found, x: &Layout) -> Layout {
        Slices::default().layout(found, x)
    }

    fn rest(&self, found: &Self::Found, x: &Layout) -> SmallVec<[Layout; 4]> {
        rest(found, x)
    }

    fn comb(&self, found: &Self::Found, x: &Layout) -> Option<Comb> {
        Slices::default().comb(found, x)
    }

    fn sizes(&self) -> Dims {
        self.shape.iter().chain(&self.before).copied().collect()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        let (shape, before) = sizes.split_at_checked(self.shape.len())?;
        Some(Block::after(before, self.axis, shape))
    }
}

impl Tensor {
    /// The part of the tensor that `block` names, as a view.
    pub(super) fn block(&self, block: &Block) -> Result<Tensor> {
        apply(ReadRegion(block.clone()), &[self])
    }

    /// This at the beginning of 0 in `shape`.
    pub(super) fn among_zeros(self, shape: &[Dim]) -> Result<Tensor> {
        let dims = self.dims();
        if dims[..] == *shape {
            return Ok(self);
        }
        self.stretched(shape, false, self.dtype())?.block_scatter(&self, &Block::first(&dims))
    }

    /// A copy in which that part is `part`.
    pub(super) fn block_scatter(&self, part: &Tensor, block: &Block) -> Result<Tensor> {
        apply(WriteRegion(block.clone()), &[self, part])
    }
}
