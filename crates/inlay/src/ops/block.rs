//! A block is the part of a tensor that has a given shape. It starts at the origin, or further
//! along one axis. Gradient rules use blocks where a slice would need sizes as numbers: the sizes
//! of a block may be symbols.

use inlay_core::{Dim, Dims, Layout, Meta, Result, Slice};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::region::{ReadRegion, Region, WriteRegion};
use super::shape::as_many;
use super::slice_scatter::{SLICE, SLICE_SCATTER, Slices, rest};
use crate::Tensor;
use crate::array::Array;
use crate::declare::Operation;
use crate::device::Comb;
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule};

/// A part of a tensor: it has `shape` and starts, on `axis`, after the sizes in `before`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Block {
    shape: Dims,
    axis: usize,
    /// The sizes, on the axis, of the parts that come before this one.
    before: Dims,
}

impl Block {
    /// Returns the block of `shape` at the origin of a tensor.
    pub(super) fn first(shape: &[Dim]) -> Self {
        Block { shape: Dims::from_slice(shape), axis: 0, before: Dims::new() }
    }

    /// Returns the block of `shape` that comes after parts with the sizes `before` on `axis`.
    pub(super) fn after(before: &[Dim], axis: usize, shape: &[Dim]) -> Self {
        let (shape, before) = (Dims::from_slice(shape), Dims::from_slice(before));
        Block { shape, axis, before }
    }

    /// Returns the same region as slices. The caller has checked that all sizes are known.
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
    /// The axes and slices of the block; empty if a size is unknown.
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

/// Places a tensor at the origin of one of `shape` that is 0 elsewhere. The result is the tensor
/// itself if it has that shape already, which is not known while a program is made.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Pad {
    shape: Dims,
}

impl Op for Pad {
    type Inputs = Inputs<1>;
    type Found = ();
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        &SLICE_SCATTER
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        let whole = x.with_shape(self.shape.clone());
        Block::first(&x.shape).shape(self.name(), SLICE_SCATTER.target(), &whole)?;
        Inferred::only(whole)
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let part = Tensor::from_array((*x).clone());
        match part.dims()[..] == *self.shape {
            true => Ok((*x).clone()),
            false => part.written_over_zeros(&self.shape).map(|whole| whole.array().clone()),
        }
    }

    fn sizes(&self) -> Dims {
        self.shape.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        as_many(sizes, &self.shape).map(|shape| Pad { shape })
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|k| rule.g().block(&Block::first(rule.shape(k))).map(Some))
    }
}

impl Tensor {
    /// Returns a view of the part of the tensor that `block` describes.
    pub(super) fn block(&self, block: &Block) -> Result<Tensor> {
        apply(ReadRegion(block.clone()), &[self])
    }

    /// Returns a tensor of `shape` that has this tensor at its origin and is 0 elsewhere.
    pub(super) fn among_zeros(self, shape: &[Dim]) -> Result<Tensor> {
        if self.dims()[..] == *shape {
            return Ok(self);
        }
        if self.symbolic().is_some() {
            return apply(Pad { shape: Dims::from_slice(shape) }, &[&self]);
        }
        self.written_over_zeros(shape)
    }

    fn written_over_zeros(&self, shape: &[Dim]) -> Result<Tensor> {
        let zeros = self.stretched(shape, false, self.dtype())?;
        zeros.block_scatter(self, &Block::first(&self.dims()))
    }

    /// Returns a copy in which the part that `block` describes is `part`.
    pub(super) fn block_scatter(&self, part: &Tensor, block: &Block) -> Result<Tensor> {
        apply(WriteRegion(block.clone()), &[self, part])
    }
}
