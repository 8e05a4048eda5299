//! Combines the indices of several axes into one, which turns `index_put` and `scatter_nd` into a
//! scatter of rows.

use inlay_core::{DType, Dim, Dims, Error, Meta, Reduce, Result, ShapeText, broadcast_dims};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::names::Caller;
use crate::array::{Array, known};
use crate::declare::Operation;
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::{Scatter, Tensor, device};

/// Checks the range of an index and converts it to `i64` positions counted from the front.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct CheckedIndex {
    pub(super) name: Caller,
    pub(super) axis: usize,
    pub(super) size: Dim,
}

impl Op for CheckedIndex {
    type Inputs = Inputs<1>;
    type Found = ();
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        self.name.0
    }

    fn infer(&self, [index]: &[Meta; 1]) -> Result<Inferred<()>> {
        index.expect_index(self.name(), "index")?;
        Inferred::only(Meta { dtype: DType::I64, shape: index.shape.clone() })
    }

    fn run(&self, [index]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let positions =
            device::positions(self.name(), "index", index, self.axis, known(self.size))?;
        let to = index.beside(self.name(), DType::I64, index.shape())?;
        device::store_positions(&to, &positions)?;
        Ok(to)
    }

    fn sizes(&self) -> Dims {
        smallvec![self.size]
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        let &[size] = sizes else { return None };
        Some(CheckedIndex { size, ..self.clone() })
    }
}

/// Returns the positions of `index` on `axis` of `size`, checked and counted from the front.
pub(super) fn checked_index(
    operation: &'static Operation,
    index: &Tensor,
    axis: usize,
    size: Dim,
) -> Result<Tensor> {
    apply(CheckedIndex { name: Caller(operation), axis, size }, &[index])
}

/// A flat index over the first axes of `x`, for a write of rows.
pub(super) struct Flat {
    pub(super) index: Tensor,
    /// The number of axes that the index covers.
    pub(super) axes: usize,
    /// The shape of the index before it was flattened.
    pub(super) shape: Dims,
}

impl Flat {
    /// Combines one index for each of the first axes. The indices broadcast together.
    pub(super) fn of_indices(
        operation: &'static Operation,
        x: &Tensor,
        indices: &[&Tensor],
    ) -> Result<Self> {
        let op = operation.name;
        x.meta().expect_rank_at_least(op, "x", 1)?;
        if indices.is_empty() || indices.len() > x.rank() {
            let got = indices.len().to_string();
            let expected = format!("1 to {}, the rank of x", x.rank());
            return Err(Error::Argument { op, arg: "the number of indices", got, expected });
        }
        if let [mask] = indices
            && mask.dtype() == DType::Bool
        {
            return Flat::of_mask(operation, x, mask);
        }
        let brought = indices.iter().map(|index| index.beside(op, "index", x, "x"));
        let brought = brought.collect::<Result<Vec<Tensor>>>()?;
        let indices: Vec<&Tensor> = brought.iter().collect();
        let metas: Vec<Meta> = indices.iter().map(|index| index.meta()).collect();
        let mut shape = metas[0].clone();
        for meta in &metas {
            shape.shape = broadcast_dims(&[&shape.shape, &meta.shape]).ok_or_else(|| {
                let (a, b) = (&shape.shape, &meta.shape);
                let (a, b) = (ShapeText::of(a), ShapeText::of(b));
                Error::BroadcastTogether { op, a, b }
            })?;
        }
        let mut flat = Tensor::number(op, "index", 0, DType::I64)?;
        for (axis, index) in indices.iter().enumerate() {
            let size = x.dims()[axis];
            let step = x.count(&[size], DType::I64)?;
            flat = flat.multiply(&step)?.add(&checked_index(operation, index, axis, size)?)?;
        }
        let shape = flat.dims();
        Ok(Flat { index: flat.reshape(&[-1])?, axes: indices.len(), shape })
    }

    /// Takes the true places of a mask over the first axes.
    fn of_mask(operation: &'static Operation, x: &Tensor, mask: &Tensor) -> Result<Self> {
        let mask = mask.beside(operation.name, "mask", x, "x")?;
        let dims = x.dims();
        let covered = dims.get(..mask.rank()).unwrap_or(&dims);
        let index = mask.fitting(operation, "mask", covered)?.true_places()?;
        let shape = index.dims();
        Ok(Flat { index, axes: mask.rank(), shape })
    }

    /// Returns `x` with the covered axes merged into one.
    pub(super) fn rows(&self, x: &Tensor) -> Result<Tensor> {
        x.merged(0, self.axes)
    }

    /// Broadcasts `values` to one row for each entry.
    pub(super) fn updates(
        &self,
        operation: &'static Operation,
        arg: &'static str,
        x: &Tensor,
        values: &Tensor,
    ) -> Result<Tensor> {
        let op = operation.name;
        values.meta().expect_dtype_of(op, arg, &x.meta(), "x")?;
        let mut whole = self.shape.clone();
        whole.extend_from_slice(&x.dims()[self.axes..]);
        values
            .beside(op, arg, x, "x")?
            .stretched_for(operation, arg, &whole)?
            .merged(0, self.shape.len())
    }
}

/// Returns the scatter that writes the rows.
pub(super) fn how(operation: &'static Operation, accumulate: bool) -> Scatter {
    match accumulate {
        true => Scatter::reduce(Reduce::Sum).include_self(true),
        false => Scatter::overwrite(),
    }
    .called(operation)
}
