//! The gradients of a scatter: one for each way to combine, made of operations.

use std::cell::OnceCell;

use inlay_core::{Combine, DType, Dims, Meta, Reduce, Result};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::products::{base_gradient, factors_gradient};
use crate::declare::{Operation, declare};
use crate::array::Array;
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::{PutAlongAxis, Scatter, Tensor, device};

declare! {
    WINNERS = "winners"(x: Tensor, index: Index);
}

/// A scatter that has been done, as its gradient sees it.
pub(super) struct Scattered<'a> {
    pub(super) combine: Combine,
    pub(super) axis: usize,
    pub(super) along: Along,
    /// The gradient of the result.
    pub(super) g: &'a Tensor,
    /// 1-D for rows, of the tensor's rank for elements.
    pub(super) index: Tensor,
    /// The base, the updates (one for each entry) and the result, where the rule reads them.
    pub(super) x: Option<Tensor>,
    pub(super) updates: Option<Tensor>,
    pub(super) y: Option<Tensor>,
    /// What both gradients are made of is made once.
    pub(super) made: Made,
}

/// What an entry of the index stands for.
#[derive(Clone)]
pub(super) enum Along {
    /// A row: `scatter`.
    Rows,
    /// An element: `put_along_axis`, other than a product. Of this shape; the index may be stretched.
    Elements { shape: Dims, broadcast: bool },
}

#[derive(Default)]
pub(super) struct Made {
    /// Which updates equal the result.
    meets: OnceCell<Tensor>,
    /// The part of the gradient that each value of a place has.
    share: OnceCell<Tensor>,
}

/// The value that is there already, or that is made now.
fn once(cell: &OnceCell<Tensor>, make: impl FnOnce() -> Result<Tensor>) -> Result<&Tensor> {
    if cell.get().is_none() {
        let made = make()?;
        // It was empty just now, and belongs to this thread.
        let _ = cell.set(made);
    }
    Ok(cell.get().unwrap_or_else(|| unreachable!("just set")))
}

/// 0, to be stretched.
fn nothing(dtype: DType) -> Result<Tensor> {
    Tensor::scalar("scatter", "updates", false, dtype)
}

/// What the rule of a combination reads: base, updates, result.
pub(super) fn reads(combine: Combine) -> (bool, bool, bool) {
    match combine {
        Combine::Reduce { reduce: Reduce::Mul, include_self } => (include_self, true, false),
        Combine::Reduce { reduce: Reduce::Amax | Reduce::Amin, include_self } => {
            (include_self, true, true)
        }
        _ => (false, false, false),
    }
}

impl Scattered<'_> {
    fn axis(&self) -> i64 {
        self.axis as i64
    }

    /// What each entry's place has of `x`.
    fn select(&self, x: &Tensor) -> Result<Tensor> {
        match &self.along {
            Along::Rows => x.index_select(&self.index, self.axis()),
            Along::Elements { broadcast, .. } => {
                x.take_along_axis(&self.index, self.axis(), *broadcast)
            }
        }
    }

    /// The values of each entry's place added to that of `x`.
    fn add(&self, x: &Tensor, values: &Tensor) -> Result<Tensor> {
        match &self.along {
            Along::Rows => {
                let how = Scatter::reduce(Reduce::Sum).include_self(true).axis(self.axis());
                x.scatter(&self.index, values, how)
            }
            Along::Elements { broadcast, .. } => {
                let how = PutAlongAxis::reduce(self.axis(), Reduce::Sum).broadcast(*broadcast);
                x.put_along_axis(&self.index, values, how)
            }
        }
    }

    /// The gradient with 0 in every place that was named.
    fn unnamed(&self) -> Result<Tensor> {
        match &self.along {
            Along::Rows => self.g.index_fill(&self.index, self.axis(), 0),
            Along::Elements { shape, broadcast } => {
                let nothing = self.g.stretched(shape, false, self.g.dtype())?;
                let how = PutAlongAxis::assign(self.axis()).broadcast(*broadcast);
                self.g.put_along_axis(&self.index, &nothing, how)
            }
        }
    }

    /// A vector along the axis, in a shape that stretches over rows.
    fn along(&self, vector: &Tensor) -> Result<Tensor> {
        let mut shape = vec![1; self.g.rank()];
        shape[self.axis] = -1;
        vector.reshape(&shape)
    }

    fn read(value: &Option<Tensor>) -> &Tensor {
        match value {
            Some(tensor) => tensor,
            None => unreachable!("the rule has said that it reads this"),
        }
    }

    /// The gradient of the base.
    pub(super) fn to_base(&self) -> Result<Tensor> {
        let Combine::Reduce { reduce, include_self: true } = self.combine else {
            return self.unnamed();
        };
        match reduce {
            Reduce::Sum => Ok(self.g.clone()),
            Reduce::Mean => self.share().cloned(),
            Reduce::Mul => base_gradient(self.g, Self::read(&self.updates), &self.index, self.axis),
            Reduce::Amax | Reduce::Amin => {
                let (x, y) = (Self::read(&self.x), Self::read(&self.y));
                let share = self.share()?;
                x.same_as(y)?.where_(share, &nothing(share.dtype())?)
            }
        }
    }

    /// The gradient of the updates, one for each entry.
    pub(super) fn to_updates(&self) -> Result<Tensor> {
        let nothing = nothing(self.g.dtype())?;
        let Combine::Reduce { reduce, .. } = self.combine else {
            return self.winners()?.where_(&self.select(self.g)?, &nothing);
        };
        match reduce {
            Reduce::Sum => self.select(self.g),
            Reduce::Mean => self.select(self.share()?),
            Reduce::Mul => {
                let updates = Self::read(&self.updates);
                factors_gradient(self.g, updates, &self.index, self.axis, self.x.as_ref())
            }
            Reduce::Amax | Reduce::Amin => {
                self.meets()?.where_(&self.select(self.share()?)?, &nothing)
            }
        }
    }

    /// Which entries are the last of their place, in a shape that stretches over updates.
    fn winners(&self) -> Result<Tensor> {
        let (axis, of_rows) = (self.axis, matches!(self.along, Along::Rows));
        let winners = apply(Winners { axis, of_rows }, &[self.g, &self.index])?;
        if of_rows { self.along(&winners) } else { Ok(winners) }
    }

    /// Which updates equal the result.
    fn meets(&self) -> Result<&Tensor> {
        once(&self.made.meets, || {
            Self::read(&self.updates).same_as(&self.select(Self::read(&self.y))?)
        })
    }

    /// The part of the gradient that each value of a place has.
    fn share(&self) -> Result<&Tensor> {
        once(&self.made.share, || match self.combine {
            Combine::Reduce { reduce: Reduce::Mean, include_self } => {
                self.shared(&self.counts(include_self)?)
            }
            _ => self.shared(&self.equals()?),
        })
    }

    /// The dtype in which the gradient is divided.
    fn wide(&self) -> DType {
        match self.g.dtype() {
            DType::F16 | DType::BF16 => DType::F32,
            dtype => dtype,
        }
    }

    /// How many values became one, for each place.
    fn counts(&self, include_self: bool) -> Result<Tensor> {
        let dims = self.g.dims();
        let (places, entries) = match &self.along {
            Along::Rows => (smallvec![dims[self.axis]], self.index.dims()),
            Along::Elements { shape, .. } => (dims, shape.clone()),
        };
        let own = self.g.stretched(&places, include_self, DType::I64)?;
        let ones = self.g.stretched(&entries, 1, DType::I64)?;
        match &self.along {
            Along::Rows => {
                let how = Scatter::reduce(Reduce::Sum).include_self(true);
                self.along(&own.scatter(&self.index, &ones, how)?)?.cast(self.wide())
            }
            Along::Elements { .. } => self.add(&own, &ones)?.cast(self.wide()),
        }
    }

    /// How many values equal the result, for each element.
    fn equals(&self) -> Result<Tensor> {
        let y = Self::read(&self.y);
        let meets = self.meets()?;
        // Half of the bytes, where no count can be larger.
        let entries = meets.dims().iter().map(|dim| dim.known()).product::<Option<usize>>();
        let fits =
            entries.is_some_and(|entries| i32::try_from(entries).is_ok_and(|n| n < i32::MAX));
        let number = if fits { DType::I32 } else { DType::I64 };
        let base = match &self.x {
            Some(x) => x.same_as(y)?.cast(number)?,
            None => y.stretched(&y.dims(), false, number)?,
        };
        self.add(&base, &meets.cast(number)?)?.cast(self.wide())
    }

    /// The gradient divided by `count`; places with none keep it, since nobody divides theirs.
    fn shared(&self, count: &Tensor) -> Result<Tensor> {
        let none = count.equal(&nothing(count.dtype())?)?;
        let count = count.masked_fill(&none, 1)?;
        self.g.widened()?.divide(&count)?.narrowed(self.g.dtype())
    }
}

/// Which entries of an index are the last that name their place on the `axis` of a tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Winners {
    axis: usize,
    /// A 1-D index of rows, not one of elements along the axis.
    of_rows: bool,
}

impl Op for Winners {
    type Inputs = Inputs<2>;
    type Found = ();
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        &WINNERS
    }

    fn infer(&self, [x, index]: &[Meta; 2]) -> Result<Inferred<()>> {
        index.expect_index(self.name(), "index")?;
        x.expect_axis(self.name(), self.axis)?;
        index.expect_rank(self.name(), "index", if self.of_rows { 1 } else { x.rank() })?;
        Inferred::only(Meta { dtype: DType::Bool, shape: index.shape.clone() })
    }

    fn run(&self, [x, index]: &[&Array; 2], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let places = x.shape()[self.axis];
        let positions = device::positions(self.name(), "index", index, self.axis, places)?;
        let to = index.beside(self.name(), DType::Bool, index.shape())?;
        let along = if self.of_rows { 0 } else { self.axis };
        device::winning_elements(&to, &positions, along, places)?;
        Ok(to)
    }
}
