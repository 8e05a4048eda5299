//! The gradients of a scatter: one for each way to combine, made of operations.

use inlay_core::{Combine, DType, Kind, Reduce, Result};

use super::scan::Chain;
use crate::{Scatter, Tensor};

/// A scatter of rows that has been done, as its gradient sees it.
pub(super) struct Scattered<'a> {
    pub(super) combine: Combine,
    pub(super) axis: usize,
    /// The gradient of the result.
    pub(super) g: &'a Tensor,
    /// 1-D.
    pub(super) index: Tensor,
    /// The base, the updates (one row an entry) and the result, where the rule reads them.
    pub(super) x: Option<Tensor>,
    pub(super) updates: Option<Tensor>,
    pub(super) y: Option<Tensor>,
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
        x.index_select(&self.index, self.axis())
    }

    /// A vector along the axis, in a shape that stretches over rows.
    fn along(&self, vector: &Tensor) -> Result<Tensor> {
        let mut shape = vec![1; self.g.rank()];
        shape[self.axis] = vector.numel() as i64;
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
            return self.g.index_fill(&self.index, self.axis(), 0);
        };
        match reduce {
            Reduce::Sum => Ok(self.g.clone()),
            Reduce::Mean => self.shared(&self.counts(true)?),
            Reduce::Mul => {
                let updates = Self::read(&self.updates).precise()?;
                let ones = Tensor::ones(self.g.shape(), updates.dtype())?;
                let how = Scatter::reduce(Reduce::Mul).axis(self.axis());
                self.g.times(&ones.scatter(&self.index, &updates, how)?.conjugate()?)
            }
            Reduce::Amax | Reduce::Amin => {
                let (x, y) = (Self::read(&self.x), Self::read(&self.y));
                let share = self.shared(&self.equals()?)?;
                x.same_as(y)?.choose(&share, &Tensor::zeros(&[], share.dtype())?)
            }
        }
    }

    /// The gradient of the updates, one row an entry.
    pub(super) fn to_updates(&self) -> Result<Tensor> {
        let nothing = Tensor::zeros(&[], self.g.dtype())?;
        let Combine::Reduce { reduce, include_self } = self.combine else {
            return self.along(&self.winners()?)?.choose(&self.select(self.g)?, &nothing);
        };
        match reduce {
            Reduce::Sum => self.select(self.g),
            Reduce::Mean => self.select(&self.shared(&self.counts(include_self)?)?),
            Reduce::Mul => {
                let first = match include_self {
                    true => Some(self.select(Self::read(&self.x))?),
                    false => None,
                };
                let places = self.g.shape()[self.axis];
                let updates = Self::read(&self.updates);
                let others =
                    products_of_others(updates, &self.index, places, self.axis, first.as_ref())?;
                self.select(self.g)?.times(&others)
            }
            Reduce::Amax | Reduce::Amin => {
                let share = self.select(&self.shared(&self.equals()?)?)?;
                let met = self.select(Self::read(&self.y))?;
                Self::read(&self.updates).same_as(&met)?.choose(&share, &nothing)
            }
        }
    }

    /// Which entries are the last of their place.
    fn winners(&self) -> Result<Tensor> {
        let numbers = Tensor::arange(0, self.index.numel() as i64, 1, DType::I64)?;
        let places = Tensor::zeros(&[self.g.shape()[self.axis]], DType::I64)?;
        let last = places.scatter(&self.index, &numbers, Scatter::overwrite())?;
        last.index_select(&self.index, 0)?.equal(&numbers)
    }

    /// The dtype in which the gradient is divided.
    fn wide(&self) -> DType {
        match self.g.dtype() {
            DType::F16 | DType::BF16 => DType::F32,
            dtype => dtype,
        }
    }

    /// How many values became one, for each place of the axis.
    fn counts(&self, include_self: bool) -> Result<Tensor> {
        let places =
            Tensor::full(&[self.g.shape()[self.axis]], i64::from(include_self), DType::I64)?;
        let ones = Tensor::ones(&[self.index.numel()], DType::I64)?;
        let how = Scatter::reduce(Reduce::Sum).include_self(true);
        self.along(&places.scatter(&self.index, &ones, how)?)?.cast(self.wide())
    }

    /// How many values equal the result, for each element.
    fn equals(&self) -> Result<Tensor> {
        let y = Self::read(&self.y);
        let base = match &self.x {
            Some(x) => x.same_as(y)?.cast(DType::I64)?,
            None => Tensor::zeros(y.shape(), DType::I64)?,
        };
        let equal = Self::read(&self.updates).same_as(&self.select(y)?)?.cast(DType::I64)?;
        let how = Scatter::reduce(Reduce::Sum).include_self(true).axis(self.axis());
        base.scatter(&self.index, &equal, how)?.cast(self.wide())
    }

    /// The gradient divided by `count`; places with none keep it, since nobody divides theirs.
    fn shared(&self, count: &Tensor) -> Result<Tensor> {
        let zero = Tensor::zeros(&[], count.dtype())?;
        let count = count.masked_fill(&count.equal(&zero)?, 1)?;
        self.g.widened()?.divide(&count)?.narrowed(self.g.dtype())
    }
}

/// For each row of `x` the conjugate of the product of all other rows that name its place, times
/// `first`, if there is one, which holds the place's own value for each row.
///
/// Products before and after each row, in twice the precision, in which they stay: factors that are 0,
/// tiny or huge come out right, as nothing is divided and hardly anything leaves the range.
pub(super) fn products_of_others(
    x: &Tensor,
    index: &Tensor,
    places: usize,
    axis: usize,
    first: Option<&Tensor>,
) -> Result<Tensor> {
    let wide = x.precise()?;
    let one = Tensor::ones(&[], wide.dtype())?;
    let first = first.map(Tensor::precise).transpose()?;
    let before = Chain::new(index, places, axis, false)?;
    let before = before.products_before(&wide, first.as_ref().unwrap_or(&one))?;
    let after = Chain::new(index, places, axis, true)?.products_before(&wide, &one)?;
    before.multiply(&after)?.conjugate()
}

impl Tensor {
    /// In twice the precision where there is such a dtype.
    fn precise(&self) -> Result<Tensor> {
        self.narrowed(match self.dtype() {
            DType::F16 | DType::BF16 => DType::F32,
            dtype if dtype.kind() == Kind::Complex => DType::C128,
            _ => DType::F64,
        })
    }

    /// Times factors of twice the precision, rounded once.
    pub(super) fn times(&self, precise: &Tensor) -> Result<Tensor> {
        self.narrowed(precise.dtype())?.multiply(precise)?.narrowed(self.dtype())
    }

    /// Whether elements are equal, or both NaN.
    pub(super) fn same_as(&self, other: &Tensor) -> Result<Tensor> {
        let both_nan = self.not_equal(self)?.multiply(&other.not_equal(other)?)?;
        self.equal(other)?.add(&both_nan)
    }
}
