//! Chains along an index, of which the exact gradient of a product is made.
//!
//! The entries of an index that name the same place form a chain, in index order. A row of a chain
//! is a value of its own plus a factor times the row before it. The derivative of such a recurrence
//! is again one, so a product of "all other factors" needs no division, at any order of gradient.

use inlay_core::{DType, Dim, Dims, Meta, Result};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::block::Block;
use crate::array::{Array, known};
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Tensor, device};

declare! {
    NEIGHBOURS = "neighbours"(index: Index);

    SCAN = "scan"(a: Tensor, c: Tensor, from: Index);
}

/// For each entry of an index, the one before (or after) it in its chain, or the number of entries
/// if there is none.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Neighbours {
    places: Dim,
    backwards: bool,
}

impl Op for Neighbours {
    type Inputs = Inputs<1>;
    type Found = ();
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        &NEIGHBOURS
    }

    fn infer(&self, [index]: &[Meta; 1]) -> Result<Inferred<()>> {
        index.expect_index(self.name(), "index")?;
        index.expect_rank(self.name(), "index", 1)?;
        Inferred::only(Meta { dtype: DType::I64, shape: index.dims() })
    }

    fn run(&self, [index]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let positions = device::positions(self.name(), "index", index, 0, known(self.places))?;
        let to = index.beside(self.name(), DType::I64, index.shape())?;
        device::neighbours(&to, &positions, known(self.places), self.backwards)?;
        Ok(to)
    }

    fn sizes(&self) -> Dims {
        smallvec![self.places]
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        let &[places] = sizes else { return None };
        Some(Neighbours { places, backwards: self.backwards })
    }
}

/// `y[i] = a[i] + c[i] * y[from[i]]` along an axis. At the start of a chain, `y[i] = a[i]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Scan {
    axis: usize,
    backwards: bool,
}

impl Op for Scan {
    type Inputs = Inputs<3>;
    type Found = ();

    fn operation(&self) -> &'static Operation {
        &SCAN
    }

    fn infer(&self, [a, c, from]: &[Meta; 3]) -> Result<Inferred<()>> {
        c.expect_dtype_of(self.name(), "c", a, "a")?;
        inlay_core::expect_shape(self.name(), "c", &c.shape, &a.shape)?;
        a.expect_axis(self.name(), self.axis)?;
        inlay_core::expect_shape(self.name(), "from", &from.shape, &[a.shape[self.axis]])?;
        Inferred::only(a.clone())
    }

    fn run(&self, [a, c, from]: &[&Array; 3], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let count = a.shape()[self.axis];
        // The position one past the axis means "none".
        let from = device::positions(self.name(), "from", from, self.axis, count + 1)?;
        // In a program that was read from a file, `from` may have any values.
        device::expect_chain(self.name(), &from, self.backwards)?;
        let to = a.new_like(self.name())?;
        device::scan_rows(&to, a, c, self.axis, &from, self.backwards)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1, 2]).and_output()
    }

    /// Let `z` be the gradient of `y`, accumulated along the chain:
    /// `z[i] = g[i] + conj(c[n]) z[n]`, where `n` is the row with `from[n] = i`. Then the gradient
    /// of `a` is `z`, and that of `c[i]` is `z[i] conj(y[from[i]])`.
    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        let (c, from, y) = (rule.input(1)?.conjugate()?, rule.input(2)?, rule.output()?);
        let chain = Chain { from, axis: self.axis, backwards: self.backwards };
        let back = chain.reversed()?;
        let z = back.scan(rule.g(), &back.shift(&c)?)?;
        rule.each(|k| match k {
            0 => Ok(Some(z.clone())),
            _ => z.multiply(&chain.shift(&y.conjugate()?)?).map(Some),
        })
    }
}

/// The chains of an index along an axis, in one direction.
pub(super) struct Chain {
    /// For each row, the row before it in its chain, or the number of rows if there is none.
    from: Tensor,
    axis: usize,
    backwards: bool,
}

impl Chain {
    /// Returns the chains of a 1-D index into `places`.
    pub(super) fn new(index: &Tensor, places: Dim, axis: usize, backwards: bool) -> Result<Self> {
        let from = apply(Neighbours { places, backwards }, &[index])?;
        Ok(Chain { from, axis, backwards })
    }

    /// Returns the same chains in the opposite direction.
    fn reversed(&self) -> Result<Self> {
        let count = self.from.dims();
        // If j comes before i, then i comes after j: each row's number is written to the row before
        // it.
        let numbers = self.from.numbers(count[0])?;
        let none = self.count()?.stretched_to(&count)?;
        // The extra place at the end takes the rows that begin a chain.
        let none = Tensor::concat(&[&none, &self.count()?.reshape(&[1])?], 0)?;
        let next = none.scatter(&self.from, &numbers, crate::Scatter::overwrite())?;
        let from = next.block(&Block::first(&count))?;
        Ok(Chain { from, axis: self.axis, backwards: !self.backwards })
    }

    /// Returns the number of rows, which means "none" in `from`.
    fn count(&self) -> Result<Tensor> {
        self.from.count(&self.from.dims(), DType::I64)
    }

    /// Returns, for each row, the row of `x` before it in its chain, or 0 where the chain begins.
    pub(super) fn shift(&self, x: &Tensor) -> Result<Tensor> {
        let begins = self.begins(x.rank())?;
        // The first row of a chain reads row 0 instead, which the mask then replaces by 0.
        let from = self.from.masked_fill(&self.from.equal(&self.count()?)?, 0)?;
        x.index_select(&from, self.axis as i64)?.masked_fill(&begins, 0)
    }

    /// Returns a mask of the rows that begin a chain. It broadcasts to a tensor of rank `rank`.
    pub(super) fn begins(&self, rank: usize) -> Result<Tensor> {
        let mut shape = vec![1; rank];
        shape[self.axis] = -1;
        self.from.equal(&self.count()?)?.reshape(&shape)
    }

    /// `y[i] = a[i] + c[i] * y[from[i]]`.
    pub(super) fn scan(&self, a: &Tensor, c: &Tensor) -> Result<Tensor> {
        apply(Scan { axis: self.axis, backwards: self.backwards }, &[a, c, &self.from])
    }

    /// Returns, for each row, the product of all rows before it in its chain, times `first`.
    pub(super) fn products_before(&self, x: &Tensor, first: &Tensor) -> Result<Tensor> {
        let begins = self.begins(x.rank())?;
        let nothing = Tensor::number("scan", "first", false, x.dtype())?;
        let start = begins.where_(first, &nothing)?.stretched_to(&x.dims())?;
        self.scan(&start, &self.shift(x)?)
    }
}
