//! `scatter_nd` and `scatter_nd_add`: add values to the places that the last axis of an index
//! names.

use inlay_core::{Dim, Error, Layout, Meta, Result};

use super::flat::assign_or_add;
use super::index_put::flat;
use crate::declare::{Operation, declare};
use crate::site::within;
use crate::sizes::sizes_of;
use crate::{IntoShape, Item, Tensor};

declare! {
    /// Add ``updates[i]`` to ``x[index[i]]`` for every row of `index`, whose last axis names a
    /// place on the first axes of x.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.scatter_nd_add(np.zeros((2, 2), int), [[0, 1], [0, 1]], [5, 6])
    /// array([[ 0, 11],
    ///        [ 0,  0]])
    SCATTER_ND_ADD = "scatter_nd_add"(
        x: Tensor, index: Index, updates: Like, name: Label = None
    )
        gradients [x, updates]
        => x.scatter_nd_add(index, updates);

    /// Zeros of `shape` to which ``scatter_nd_add`` adds the updates.
    ///
    /// >>> import inlay
    /// >>> inlay.scatter_nd([[1], [1]], [5, 6], [3])
    /// array([ 0, 11,  0])
    SCATTER_ND = "scatter_nd"(
        index: Index, updates: Tensor, shape: Sizes, name: Label = None
    )
        gradients [updates]
        => Tensor::scatter_nd(index, updates, &shape);
}

impl Tensor {
    /// Returns a copy in which `x[index[i]] += updates[i]` for every row i of `index`, whose last
    /// axis names a place on the first axes of `x`.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::zeros([2, 2], DType::I32)?;
    /// let y = x.scatter_nd_add(&Tensor::from([[0i64, 1], [0, 1]]), &Tensor::from([5, 6]))?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 11, 0, 0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, indices out of range.
    #[track_caller]
    pub fn scatter_nd_add(&self, index: &Tensor, updates: &Tensor) -> Result<Tensor> {
        within(SCATTER_ND_ADD.name, || add(&SCATTER_ND_ADD, self, index, updates))
    }

    /// Returns zeros of `shape` to which [`Tensor::scatter_nd_add`] adds the updates.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let y = Tensor::scatter_nd(&Tensor::from([[1i64], [1]]), &Tensor::from([5, 6]), [3])?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 11, 0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::scatter_nd_add`].
    #[track_caller]
    pub fn scatter_nd(index: &Tensor, updates: &Tensor, shape: impl IntoShape) -> Result<Tensor> {
        let op = SCATTER_ND.name;
        let shape = &sizes_of(op, &shape.numbers())?[..];
        // Checked here, so that an error about the size names this operation.
        Layout::contiguous(op, shape, updates.dtype().size())?;
        let zeros = Meta::known(updates.dtype(), shape).shape;
        let zeros = updates.filled(&zeros, false, updates.dtype())?;
        within(op, || add(&SCATTER_ND, &zeros, index, updates))
    }
}

fn add(
    operation: &'static Operation,
    x: &Tensor,
    index: &Tensor,
    updates: &Tensor,
) -> Result<Tensor> {
    updates.meta().expect_dtype_of(operation.name, "updates", &x.meta(), "x")?;
    let parts = split(operation, x, index)?;
    let flat = flat(operation, x, &parts.iter().collect::<Vec<_>>(), false)?;
    let updates = updates.beside(operation.name, "updates", x, "x")?;
    let updates = updates.fitting(operation, "updates", &flat.shape_in(x))?;
    flat.put(operation, x, &updates, assign_or_add(true))
}

/// Splits an index, whose last axis lists one position for each axis, into one index for each axis.
pub(super) fn split(
    operation: &'static Operation,
    x: &Tensor,
    index: &Tensor,
) -> Result<Vec<Tensor>> {
    let op = operation.name;
    index.meta().expect_index(op, "index")?;
    index.meta().expect_rank_at_least(op, "index", 1)?;
    x.meta().expect_rank_at_least(op, "x", 1)?;
    let index = index.beside(op, "index", x, "x")?;
    let axis = index.rank() - 1;
    let Dim::Known(depth) = index.dims()[axis] else {
        return Err(Error::OpenSize { op, arg: "index", axis });
    };
    if depth == 0 || depth > x.rank() {
        let (arg, got) = ("the number of indices", depth.to_string());
        let expected = format!("1 to {}, the rank of x", x.rank());
        return Err(Error::Argument { op, arg, got, expected });
    }
    (0..depth as i64).map(|k| index.index(&[Item::Ellipsis, Item::At(k)])).collect()
}
