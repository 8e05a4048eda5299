//! `index_add`, `index_put`, `scatter_nd`, `scatter_nd_add`: writes that are a scatter of rows once
//! their indices are made one.

use inlay_core::{DType, Dim, Dims, Error, Meta, Reduce, Result, broadcast_dims};
use serde::{Deserialize, Serialize};

use smallvec::smallvec;

use super::broadcast::known;
use super::operation::{Name, Operation};
use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::graph::within;
use crate::{Item, Scatter, Tensor, device};

/// An index as `i64`, counted from the front and checked.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct CheckedIndex {
    pub(super) name: Name,
    pub(super) axis: usize,
    pub(super) size: Dim,
}

impl Op for CheckedIndex {
    fn name(&self) -> &'static str {
        self.name.0
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [index] = inputs else { unreachable!("one input") };
        index.expect_index(self.name(), "index")?;
        Ok(Meta { dtype: DType::I64, shape: index.shape.clone() })
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [index] = inputs else { unreachable!("one input") };
        let positions =
            device::positions(self.name(), "index", index, self.axis, known(self.size))?;
        let to = index.beside(self.name(), DType::I64, index.shape())?;
        device::store_positions(&to, &positions)?;
        Ok(to)
    }

    fn sizes(&self) -> Dims {
        smallvec![self.size]
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Operation> {
        let &[size] = sizes else { return None };
        Some(CheckedIndex { size, ..self.clone() }.into())
    }

    fn is_differentiable(&self) -> bool {
        false
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|_| Ok(None))
    }
}

/// The positions of `index` on `axis` of `size`, from the front.
pub(super) fn checked_index(
    name: &'static str,
    index: &Tensor,
    axis: usize,
    size: Dim,
) -> Result<Tensor> {
    apply(CheckedIndex { name: Name(name), axis, size }, &[index])
}

/// A write of rows at one flat index over the first axes of `x`.
struct Flat {
    index: Tensor,
    /// How many axes the index stands for.
    axes: usize,
    /// The shape of the index before it was made flat.
    shape: Dims,
}

impl Flat {
    /// Of one index for each of the first axes, stretched to one shape.
    fn of_indices(op: &'static str, x: &Tensor, indices: &[&Tensor]) -> Result<Self> {
        x.meta().expect_rank_at_least(op, "x", 1)?;
        if indices.is_empty() || indices.len() > x.rank() {
            let got = indices.len().to_string();
            let expected = format!("1 to {}, the rank of x", x.rank());
            return Err(Error::Argument { op, arg: "the number of indices", got, expected });
        }
        if let [mask] = indices
            && mask.dtype() == DType::Bool
        {
            return Flat::of_mask(op, x, mask);
        }
        let brought = indices.iter().map(|index| index.beside(op, "index", x, "x"));
        let brought = brought.collect::<Result<Vec<Tensor>>>()?;
        let indices: Vec<&Tensor> = brought.iter().collect();
        let metas: Vec<Meta> = indices.iter().map(|index| index.meta()).collect();
        let mut shape = metas[0].clone();
        for meta in &metas {
            shape.shape = broadcast_dims(&[&shape.shape, &meta.shape]).ok_or_else(|| {
                let (a, b) = (&shape.shape, &meta.shape);
                let (a, b) = (inlay_core::ShapeText::of(a), inlay_core::ShapeText::of(b));
                Error::BroadcastTogether { op, a, b }
            })?;
        }
        let mut flat = Tensor::scalar(op, "index", 0, DType::I64)?;
        for (axis, index) in indices.iter().enumerate() {
            let size = x.dims()[axis];
            let step = x.count(&[size], DType::I64)?;
            flat = flat.multiply(&step)?.add(&checked_index(op, index, axis, size)?)?;
        }
        let shape = flat.dims();
        Ok(Flat { index: flat.reshape(&[-1])?, axes: indices.len(), shape })
    }

    /// Of the true places of a mask over the first axes.
    fn of_mask(op: &'static str, x: &Tensor, mask: &Tensor) -> Result<Self> {
        let mask = mask.beside(op, "mask", x, "x")?;
        let dims = x.dims();
        let covered = dims.get(..mask.rank()).unwrap_or(&dims);
        let index = mask.fitting(op, "mask", covered)?.true_places()?;
        let shape = index.dims();
        Ok(Flat { index, axes: mask.rank(), shape })
    }

    /// `x` with the first axes made one.
    fn rows(&self, x: &Tensor) -> Result<Tensor> {
        x.merged(0, self.axes)
    }

    /// `values` stretched to one row an entry.
    fn updates(
        &self,
        op: &'static str,
        arg: &'static str,
        x: &Tensor,
        values: &Tensor,
    ) -> Result<Tensor> {
        values.meta().expect_dtype_of(op, arg, &x.meta(), "x")?;
        let mut whole = self.shape.clone();
        whole.extend_from_slice(&x.dims()[self.axes..]);
        values.beside(op, arg, x, "x")?.stretched_for(op, arg, &whole)?.merged(0, self.shape.len())
    }
}

fn how(op: &'static str, accumulate: bool) -> Scatter {
    match accumulate {
        true => Scatter::reduce(Reduce::Sum).include_self(true),
        false => Scatter::overwrite(),
    }
    .named(op, "value")
}

impl Tensor {
    /// A copy in which, along `axis` and for i in order, `x[index[i]] += values[i]`.
    ///
    /// # Errors
    /// As [`Tensor::scatter`].
    #[track_caller]
    pub fn index_add(&self, index: &Tensor, axis: i64, values: &Tensor) -> Result<Tensor> {
        self.scatter(index, values, how("index_add", true).axis(axis))
    }

    /// [`Tensor::index_add`] in place.
    ///
    /// # Errors
    /// As [`Tensor::scatter_`].
    #[track_caller]
    pub fn index_add_(&self, index: &Tensor, axis: i64, values: &Tensor) -> Result<&Self> {
        self.scatter_(index, values, how("index_add", true).axis(axis))
    }

    /// A copy in which `x[indices[0][i], indices[1][i], …] = values[i]`, or `+=` to accumulate.
    ///
    /// The indices are integers for the first axes, which stretch to one shape, or a single mask. The
    /// values stretch to the shape of what is written.
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, indices out of range.
    #[track_caller]
    pub fn index_put(
        &self,
        indices: &[&Tensor],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<Tensor> {
        let op = "index_put";
        within(op, || {
            let flat = Flat::of_indices(op, self, indices)?;
            let updates = flat.updates(op, "value", self, values)?;
            let rows = flat.rows(self)?.scatter(&flat.index, &updates, how(op, accumulate))?;
            rows.shaped(&self.dims())
        })
    }

    /// [`Tensor::index_put`] in place.
    ///
    /// # Errors
    /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
    #[track_caller]
    pub fn index_put_(
        &self,
        indices: &[&Tensor],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<&Self> {
        let op = "index_put";
        self.expect_target(op, "x")?;
        within(op, || {
            let flat = Flat::of_indices(op, self, indices)?;
            let updates = flat.updates(op, "value", self, values)?;
            self.write_rows(&flat, &updates, how(op, accumulate))
        })
    }

    /// A copy in which `x[index[i]] += updates[i]` for every row i of `index`, whose last axis names a
    /// place on the first axes of `x`.
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, indices out of range.
    #[track_caller]
    pub fn scatter_nd_add(&self, index: &Tensor, updates: &Tensor) -> Result<Tensor> {
        let op = "scatter_nd_add";
        within(op, || scatter_nd_add(op, self, index, updates))
    }

    /// Zeros of `shape` to which [`Tensor::scatter_nd_add`] has added.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn scatter_nd(index: &Tensor, updates: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let op = "scatter_nd";
        // Named here, so that a size that can't be is an error of this operation.
        inlay_core::Layout::contiguous(op, shape, updates.dtype().size())?;
        let zeros = Meta::known(updates.dtype(), shape).shape;
        let zeros = updates.filled(&zeros, false, updates.dtype())?;
        within(op, || scatter_nd_add(op, &zeros, index, updates))
    }

    /// Writes rows of the first axes made one, in place; through a view of the memory where there is
    /// one and no gradient is recorded, else through a copy.
    fn write_rows(&self, flat: &Flat, updates: &Tensor, how: Scatter) -> Result<&Self> {
        let rows = flat.rows(self)?;
        let shared = !self.is_symbolic() && rows.array().buffer.same_as(&self.array().buffer);
        let tracked = !self.stop_gradient() || !updates.stop_gradient();
        if shared && !(tracked && crate::is_grad_enabled()) {
            rows.scatter_(&flat.index, updates, how)?;
            return Ok(self);
        }
        let written = rows.scatter(&flat.index, updates, how)?.shaped(&self.dims())?;
        self.assign(&[Item::Ellipsis], &written)?;
        Ok(self)
    }
}

fn scatter_nd_add(
    op: &'static str,
    x: &Tensor,
    index: &Tensor,
    updates: &Tensor,
) -> Result<Tensor> {
    updates.meta().expect_dtype_of(op, "updates", &x.meta(), "x")?;
    let flat = nd_index(op, x, index)?;
    let mut expected = flat.shape.clone();
    expected.extend_from_slice(&x.dims()[flat.axes..]);
    let updates = updates.fitting(op, "updates", &expected)?;
    let rows = flat.updates(op, "updates", x, &updates)?;
    flat.rows(x)?.scatter(&flat.index, &rows, how(op, true))?.shaped(&x.dims())
}

/// One index for each axis out of an index whose last axis lists them.
fn nd_index(op: &'static str, x: &Tensor, index: &Tensor) -> Result<Flat> {
    index.meta().expect_index(op, "index")?;
    index.meta().expect_rank_at_least(op, "index", 1)?;
    let index = index.beside(op, "index", x, "x")?;
    let axis = index.rank() - 1;
    let Dim::Known(depth) = index.dims()[axis] else {
        return Err(Error::OpenSize { op, arg: "index", axis });
    };
    let parts = (0..depth as i64).map(|k| index.index(&[Item::Ellipsis, Item::At(k)]));
    let parts = parts.collect::<Result<Vec<Tensor>>>()?;
    Flat::of_indices(op, x, &parts.iter().collect::<Vec<_>>())
}
