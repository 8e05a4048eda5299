//! `index_add`, `index_put`, `scatter_nd`, `scatter_nd_add`: writes that are a scatter of rows once
//! their indices are made one.

use inlay_core::{DType, Error, Meta, Reduce, Result, broadcast_dims};

use super::broadcast::sizes;
use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Item, Scatter, Tensor, device};

/// An index as `i64`, counted from the front and checked.
#[derive(Debug)]
struct CheckedIndex {
    name: &'static str,
    axis: usize,
    size: usize,
}

impl Op for CheckedIndex {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [index] = inputs else { unreachable!("one input") };
        index.expect_index(self.name, "index")?;
        Ok(Meta { dtype: DType::I64, shape: index.shape.clone() })
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [index] = inputs else { unreachable!("one input") };
        let positions = device::positions(self.name, "index", index, self.axis, self.size)?;
        let to = Array::new(self.name, DType::I64, index.shape())?;
        device::store(&to, positions.values())?;
        Ok(to)
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
    size: usize,
) -> Result<Tensor> {
    apply(CheckedIndex { name, axis, size }, &[index])
}

/// A write of rows at one flat index over the first axes of `x`.
struct Flat {
    index: Tensor,
    /// How many axes the index stands for.
    axes: usize,
    /// The shape of the index before it was made flat.
    shape: Vec<usize>,
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
        let metas: Vec<Meta> = indices.iter().map(|index| index.meta()).collect();
        let mut shape = metas[0].clone();
        for meta in &metas {
            shape.shape = broadcast_dims(&[&shape.shape, &meta.shape]).ok_or_else(|| {
                let (a, b) = (&shape.shape, &meta.shape);
                let (a, b) = (inlay_core::ShapeText::of(a), inlay_core::ShapeText::of(b));
                Error::BroadcastTogether { op, a, b }
            })?;
        }
        let shape = sizes(&shape);
        let mut flat = Tensor::zeros(&shape, DType::I64)?;
        for (axis, index) in indices.iter().enumerate() {
            let size = x.shape()[axis];
            let step = Tensor::scalar(op, "size", size as i64, DType::I64)?;
            flat = flat.multiply(&step)?.add(&checked_index(op, index, axis, size)?)?;
        }
        Ok(Flat { index: flat.reshape(&[-1])?, axes: indices.len(), shape })
    }

    /// Of the true places of a mask over the first axes.
    fn of_mask(op: &'static str, x: &Tensor, mask: &Tensor) -> Result<Self> {
        let covered = Meta::known(DType::Bool, x.shape().get(..mask.rank()).unwrap_or(x.shape()));
        inlay_core::expect_shape(op, "mask", &mask.meta().shape, &covered.shape)?;
        let numbers = Tensor::arange(0, mask.numel() as i64, 1, DType::I64)?;
        let index = numbers.masked_select(&mask.reshape(&[-1])?)?;
        let shape = vec![index.numel()];
        Ok(Flat { index, axes: mask.rank(), shape })
    }

    /// `x` with the first axes made one.
    fn rows(&self, op: &'static str, x: &Tensor) -> Result<Tensor> {
        let first = &x.shape()[..self.axes];
        let count = first.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        let count = count.filter(|&count| isize::try_from(count).is_ok());
        let count = count.ok_or_else(|| Error::TooLarge { op, shape: x.shape().to_vec() })?;
        x.shaped(&[&[count], &x.shape()[self.axes..]].concat())
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
        let rest = &x.shape()[self.axes..];
        let whole = [&self.shape, rest].concat();
        let stretched = values.broadcast_to(&whole).map_err(|_| Error::Broadcast {
            op,
            arg,
            got: inlay_core::ShapeText::of(values.shape()),
            to: inlay_core::ShapeText::of(&whole),
        })?;
        stretched.shaped(&[&[self.index.numel()], rest].concat())
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
    pub fn index_add(&self, index: &Tensor, axis: i64, values: &Tensor) -> Result<Tensor> {
        self.scatter(index, values, how("index_add", true).axis(axis))
    }

    /// [`Tensor::index_add`] in place.
    ///
    /// # Errors
    /// As [`Tensor::scatter_`].
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
    pub fn index_put(
        &self,
        indices: &[&Tensor],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<Tensor> {
        let op = "index_put";
        let flat = Flat::of_indices(op, self, indices)?;
        let updates = flat.updates(op, "value", self, values)?;
        let rows = flat.rows(op, self)?.scatter(&flat.index, &updates, how(op, accumulate))?;
        rows.shaped(self.shape())
    }

    /// [`Tensor::index_put`] in place.
    ///
    /// # Errors
    /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
    pub fn index_put_(
        &self,
        indices: &[&Tensor],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<&Self> {
        let op = "index_put";
        self.array().expect_target(op, "x")?;
        let flat = Flat::of_indices(op, self, indices)?;
        let updates = flat.updates(op, "value", self, values)?;
        self.write_rows(op, &flat, &updates, how(op, accumulate))
    }

    /// A copy in which `x[index[i]] += updates[i]` for every row i of `index`, whose last axis names a
    /// place on the first axes of `x`.
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, indices out of range.
    pub fn scatter_nd_add(&self, index: &Tensor, updates: &Tensor) -> Result<Tensor> {
        scatter_nd_add("scatter_nd_add", self, index, updates)
    }

    /// Zeros of `shape` to which [`Tensor::scatter_nd_add`] has added.
    ///
    /// # Errors
    /// As there.
    pub fn scatter_nd(index: &Tensor, updates: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let op = "scatter_nd";
        // Named here, so that a size that can't be is an error of this operation.
        inlay_core::Layout::contiguous(op, shape, updates.dtype().size())?;
        scatter_nd_add(op, &Tensor::zeros(shape, updates.dtype())?, index, updates)
    }

    /// Writes rows of the first axes made one, in place; through a view of the memory where there is
    /// one and no gradient is recorded, else through a copy.
    fn write_rows(
        &self,
        op: &'static str,
        flat: &Flat,
        updates: &Tensor,
        how: Scatter,
    ) -> Result<&Self> {
        let rows = flat.rows(op, self)?;
        let shared = rows.data_ptr() == self.data_ptr();
        let tracked = !self.stop_gradient() || !updates.stop_gradient();
        if shared && !(tracked && crate::is_grad_enabled()) {
            rows.scatter_(&flat.index, updates, how)?;
            return Ok(self);
        }
        let written = rows.scatter(&flat.index, updates, how)?.shaped(self.shape())?;
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
    let expected = [&flat.shape, &x.shape()[flat.axes..]].concat();
    let expected = Meta::known(x.dtype(), &expected).shape;
    inlay_core::expect_shape(op, "updates", &updates.meta().shape, &expected)?;
    let rows = flat.updates(op, "updates", x, updates)?;
    flat.rows(op, x)?.scatter(&flat.index, &rows, how(op, true))?.shaped(x.shape())
}

/// One index for each axis out of an index whose last axis lists them.
fn nd_index(op: &'static str, x: &Tensor, index: &Tensor) -> Result<Flat> {
    index.meta().expect_index(op, "index")?;
    index.meta().expect_rank_at_least(op, "index", 1)?;
    let depth = index.shape()[index.rank() - 1];
    let parts = (0..depth as i64).map(|k| index.index(&[Item::Ellipsis, Item::At(k)]));
    let parts = parts.collect::<Result<Vec<Tensor>>>()?;
    Flat::of_indices(op, x, &parts.iter().collect::<Vec<_>>())
}
