//! The gradient rules of a scatter, one for each way to combine, composed of operations.

use std::cell::OnceCell;

use inlay_core::{Combine, DType, Dims, Meta, Reduce, Result};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::products::{base_gradient, factors_gradient};
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::{PutAlongAxis, Scatter, Tensor, device};

declare! {
    WINNERS = "winners"(x: Tensor, index: Index);
}

/// A scatter that has run, with the values that its gradient rule reads.
pub(super) struct Scattered<'a> {
    pub(super) combine: Combine,
    pub(super) axis: usize,
    pub(super) along: Along,
    /// The gradient of the result.
    pub(super) g: &'a Tensor,
    /// The index: 1-D for rows, of the tensor's rank for elements.
    pub(super) index: Tensor,
    /// The base, the updates (one for each entry) and the result. Each is present if the rule reads
    /// it.
    pub(super) x: Option<Tensor>,
    pub(super) updates: Option<Tensor>,
    pub(super) y: Option<Tensor>,
    /// Intermediate results that both gradients use. Each is computed once.
    pub(super) made: Made,
}

/// What one entry of the index names.
#[derive(Clone)]
pub(super) enum Along {
    /// A row, as in `scatter`.
    Rows,
    /// An element, as in `put_along_axis`. (Its products are flattened and use `Rows`.) `shape` is
    /// the shape of the entries. The index may have to be broadcast to it.
    Elements { shape: Dims, broadcast: bool },
}

#[derive(Default)]
pub(super) struct Made {
    /// A mask of the updates that equal the result.
    meets: OnceCell<Tensor>,
    /// The share of the gradient that each value of a place gets.
    share: OnceCell<Tensor>,
}

/// Returns the value of `cell`, which is computed first if the cell is empty.
fn once(cell: &OnceCell<Tensor>, make: impl FnOnce() -> Result<Tensor>) -> Result<&Tensor> {
    if cell.get().is_none() {
        let made = make()?;
        // This can't fail: the cell was empty, and a `OnceCell` belongs to one thread.
        let _ = cell.set(made);
    }
    Ok(cell.get().unwrap_or_else(|| unreachable!("just set")))
}

/// Returns a 0-D zero, to be broadcast.
fn nothing(dtype: DType) -> Result<Tensor> {
    Tensor::number("scatter", "updates", false, dtype)
}

/// Returns which values the rule of a combination reads: (base, updates, result).
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

    /// Returns, for each entry, the value of `x` at its place.
    fn gather(&self, x: &Tensor) -> Result<Tensor> {
        match &self.along {
            Along::Rows => x.index_select(&self.index, self.axis()),
            Along::Elements { broadcast, .. } => {
                x.take_along_axis(&self.index, self.axis(), *broadcast)
            }
        }
    }

    /// Returns `x` with the value of each entry added at its place.
    fn add(&self, x: &Tensor, values: &Tensor) -> Result<Tensor> {
        match &self.along {
            Along::Rows => {
                let how = Scatter::reduce(Reduce::Sum).include_self(true).axis(self.axis());
                x.scatter(&self.index, values, how)
            }
            Along::Elements { broadcast, .. } => {
                let how = PutAlongAxis::reduce(self.axis(), Reduce::Sum);
                let how = how.include_self(true).broadcast(*broadcast);
                x.put_along_axis(&self.index, values, how)
            }
        }
    }

    /// Returns the gradient with 0 at every place that the index names.
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

    /// Reshapes a vector along the axis so that it broadcasts over rows.
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

    /// Returns the gradient of the base.
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

    /// Returns the gradient of the updates, one for each entry.
    pub(super) fn to_updates(&self) -> Result<Tensor> {
        let nothing = nothing(self.g.dtype())?;
        let Combine::Reduce { reduce, .. } = self.combine else {
            return self.winners()?.where_(&self.gather(self.g)?, &nothing);
        };
        match reduce {
            Reduce::Sum => self.gather(self.g),
            Reduce::Mean => self.gather(self.share()?),
            Reduce::Mul => {
                let updates = Self::read(&self.updates);
                factors_gradient(self.g, updates, &self.index, self.axis, self.x.as_ref())
            }
            Reduce::Amax | Reduce::Amin => {
                self.meets()?.where_(&self.gather(self.share()?)?, &nothing)
            }
        }
    }

    /// Returns a mask of the entries that are the last ones of their place. It broadcasts over
    /// updates.
    fn winners(&self) -> Result<Tensor> {
        let (axis, of_rows) = (self.axis, matches!(self.along, Along::Rows));
        let winners = apply(Winners { axis, of_rows }, &[self.g, &self.index])?;
        if of_rows { self.along(&winners) } else { Ok(winners) }
    }

    /// Returns a mask of the updates that equal the result.
    fn meets(&self) -> Result<&Tensor> {
        once(&self.made.meets, || {
            Self::read(&self.updates).same_as(&self.gather(Self::read(&self.y))?)
        })
    }

    /// Returns the share of the gradient that each value of a place gets.
    fn share(&self) -> Result<&Tensor> {
        once(&self.made.share, || match self.combine {
            Combine::Reduce { reduce: Reduce::Mean, include_self } => {
                self.shared(&self.counts(include_self)?)
            }
            _ => self.shared(&self.equals()?),
        })
    }

    /// The dtype in which the gradient is divided: 32 bits for 16-bit floats.
    fn wide(&self) -> DType {
        match self.g.dtype() {
            DType::F16 | DType::BF16 => DType::F32,
            dtype => dtype,
        }
    }

    /// Returns, for each place, the number of values that were combined.
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

    /// Returns, for each element of the result, the number of values that equal it.
    fn equals(&self) -> Result<Tensor> {
        let y = Self::read(&self.y);
        let meets = self.meets()?;
        // `i32` takes half the memory of `i64`. It is used if no count can exceed it.
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

    /// Returns the gradient divided by `count`. A count of 0 is replaced by 1 to avoid a division
    /// by 0: the rules don't read the share of such a place.
    fn shared(&self, count: &Tensor) -> Result<Tensor> {
        let none = count.equal(&nothing(count.dtype())?)?;
        let count = count.masked_fill(&none, 1)?;
        self.g.widened()?.divide(&count)?.narrowed(self.g.dtype())
    }
}

/// A mask of the index entries that are the last ones to name their place on `axis` of a tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Winners {
    axis: usize,
    /// Whether the index is 1-D and names rows. Otherwise it names elements along the axis.
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
        Inferred::only(Meta { dtype: DType::Bool, shape: index.dims() })
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
