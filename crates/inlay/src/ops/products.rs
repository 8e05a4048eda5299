//! The gradients of products: a factor has the gradient of the result, times all other factors.

use inlay_core::{DType, Dim, Error, Kind, Meta, Reduce, Result, expect_shape};
use serde::{Deserialize, Serialize};

use super::scan::Chain;
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::is_grad_enabled;
use crate::{Scatter, Tensor, device};

declare! {
    PRODUCTS = "products"(g: Tensor, x: Tensor, index: Index, first: Tensor);
}

/// Returns, for each row of `x`, the gradient of its place times the conjugate of the product of
/// all other rows that name the place. If `first` is given, it holds one more factor for each
/// place.
pub(super) fn factors_gradient(
    g: &Tensor,
    x: &Tensor,
    index: &Tensor,
    axis: usize,
    first: Option<&Tensor>,
) -> Result<Tensor> {
    // A gradient that is not recorded is computed by one operation.
    if !is_grad_enabled() {
        let of = if first.is_some() { Of::OthersAndOwn } else { Of::Others };
        return apply(Products { axis, of }, &[g, x, index, first.unwrap_or(g)]);
    }
    let select = |tensor: &Tensor| tensor.index_select(index, axis as i64);
    let first = first.map(select).transpose()?;
    let others = products_of_others(x, index, g.dims()[axis], axis, first.as_ref())?;
    select(g)?.times(&others)
}

/// Returns, for each place, the gradient `g` times the conjugate of the product of all rows of `x`
/// that name it.
pub(super) fn base_gradient(g: &Tensor, x: &Tensor, index: &Tensor, axis: usize) -> Result<Tensor> {
    if !is_grad_enabled() {
        return apply(Products { axis, of: Of::All }, &[g, x, index, g]);
    }
    let updates = x.precise()?;
    let ones = g.filled(&g.dims(), true, updates.dtype())?;
    let how = Scatter::reduce(Reduce::Mul).axis(axis as i64);
    g.times(&ones.scatter(index, &updates, how)?.conjugate()?)
}

/// The factors by which a gradient is multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Of {
    /// All rows of the place, for the place.
    All,
    /// All other rows of the place, for each row.
    Others,
    /// All other rows of the place and its old value, for each row.
    OthersAndOwn,
}

/// [`factors_gradient`] or [`base_gradient`] as one operation, which has no gradient of its own.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Products {
    axis: usize,
    of: Of,
}

impl Op for Products {
    type Inputs = Inputs<4>;
    type Found = ();
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        &PRODUCTS
    }

    fn infer(&self, [g, x, index, first]: &[Meta; 4]) -> Result<Inferred<()>> {
        let op = self.name();
        g.expect_axis(op, self.axis)?;
        if !g.dtype.is_differentiable() {
            let expected = "a float or complex dtype";
            return Err(Error::DType { op, arg: "g", got: g.dtype, expected });
        }
        index.expect_index(op, "index")?;
        index.expect_rank(op, "index", 1)?;
        for (arg, other) in [("x", x), ("first", first)] {
            other.expect_dtype_of(op, arg, g, "g")?;
            let mut expected = g.dims();
            if arg == "x" {
                expected[self.axis] = index.shape[0];
            }
            expect_shape(op, arg, &other.shape, &expected)?;
        }
        Inferred::only(if self.of == Of::All { g.clone() } else { x.clone() })
    }

    fn run(
        &self,
        [g, x, index, first]: &[&Array; 4],
        _: &Inferred<()>,
        _out: Out,
    ) -> Result<Array> {
        let places = g.shape()[self.axis];
        let positions = device::positions(self.name(), "index", index, self.axis, places)?;
        let to = if self.of == Of::All { g } else { x }.new_like(self.name())?;
        let first = (self.of == Of::OthersAndOwn).then_some(*first);
        match self.of {
            Of::All => device::products_of_all(&to, g, x, self.axis, &positions)?,
            _ => device::products_of_others(&to, first, g, x, self.axis, &positions)?,
        }
        Ok(to)
    }
}

/// Returns, for each row of `x`, the conjugate of the product of all other rows that name its
/// place. If `first` is given, it holds one more factor for each row.
///
/// The result is the product of the rows before times the product of the rows after, both in twice
/// the precision. Nothing is divided and overflow is unlikely, so factors that are 0, tiny or huge
/// give correct gradients.
fn products_of_others(
    x: &Tensor,
    index: &Tensor,
    places: Dim,
    axis: usize,
    first: Option<&Tensor>,
) -> Result<Tensor> {
    let wide = x.precise()?;
    let one = Tensor::number("mul", "first", true, wide.dtype())?;
    let first = first.map(Tensor::precise).transpose()?;
    let before = Chain::new(index, places, axis, false)?;
    let before = before.products_before(&wide, first.as_ref().unwrap_or(&one))?;
    let after = Chain::new(index, places, axis, true)?.products_before(&wide, &one)?;
    before.multiply(&after)?.conjugate()
}

impl Tensor {
    /// Converts the tensor to twice the precision, if there is such a dtype.
    fn precise(&self) -> Result<Tensor> {
        self.narrowed(match self.dtype() {
            DType::F16 | DType::BF16 => DType::F32,
            dtype if dtype.kind() == Kind::Complex => DType::C128,
            _ => DType::F64,
        })
    }

    /// Multiplies by factors of twice the precision and rounds once.
    pub(super) fn times(&self, precise: &Tensor) -> Result<Tensor> {
        self.narrowed(precise.dtype())?.multiply(precise)?.narrowed(self.dtype())
    }
}
