//! `masked_fill`: one value to the true places of a mask.

use std::borrow::Cow;

use inlay_core::{Meta, Result};
use serde::{Deserialize, Serialize};

use super::broadcast::{expect_mask_for, expect_single, stretch};
use crate::array::Array;
use crate::autograd::{Grads, Rule, Saves};
use crate::funnel::{Op, Out, apply, apply_in_place};
use crate::{Scalar, Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct MaskedFill;

impl Op for MaskedFill {
    fn name(&self) -> &'static str {
        "masked_fill"
    }

    fn arg(&self, k: usize) -> String {
        ["x", "mask", "value"][k].into()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x, mask, value] = inputs else { unreachable!("three inputs") };
        expect_mask_for(self.name(), mask, x)?;
        value.expect_dtype_of(self.name(), "value", x, "x")?;
        expect_single(self.name(), value)?;
        Ok(x.clone())
    }

    fn run(&self, inputs: &[&Array], out: Out) -> Result<Array> {
        let [x, mask, value] = inputs else { unreachable!("three inputs") };
        let op = self.name();
        let mask = stretch(op, "mask", mask, x.shape())?;
        let value = stretch(op, "value", value, x.shape())?;
        let (to, base) = out.of(op, x)?;
        device::select(&to, &mask, &value, base)?;
        Ok(to)
    }

    fn writes(&self) -> bool {
        true
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let mask = rule.input(1)?;
        rule.each(|k| match k {
            0 => rule.g().masked_fill(&mask, 0).map(Some),
            _ => rule.g().masked_select(&mask)?.sum(None, false).map(Some),
        })
    }
}

impl Tensor {
    /// A copy whose true places of `mask` are `value`, a plain number or a 0-D tensor.
    ///
    /// # Errors
    /// A mask that is not bool or does not broadcast, a value of another kind or shape.
    #[track_caller]
    pub fn masked_fill<'a>(&self, mask: &Tensor, value: impl Into<Fill<'a>>) -> Result<Tensor> {
        let value = value.into().tensor("masked_fill", self)?;
        apply(MaskedFill, &[self, mask, &value])
    }

    /// [`Tensor::masked_fill`] in place.
    ///
    /// # Errors
    /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
    #[track_caller]
    pub fn masked_fill_<'a>(&self, mask: &Tensor, value: impl Into<Fill<'a>>) -> Result<&Self> {
        let value = value.into().tensor("masked_fill", self)?;
        apply_in_place(MaskedFill, self, &[mask, &value]).map(|()| self)
    }
}

/// What a fill writes: a plain number, or a 0-D tensor.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Fill<'a> {
    Scalar(Scalar),
    Tensor(&'a Tensor),
}

impl<'a> Fill<'a> {
    /// As a tensor for `x`.
    pub(super) fn tensor(self, op: &'static str, x: &Tensor) -> Result<Cow<'a, Tensor>> {
        match self {
            Fill::Scalar(scalar) => scalar.to_tensor(op, "value", x.dtype()).map(Cow::Owned),
            Fill::Tensor(tensor) => Ok(Cow::Borrowed(tensor)),
        }
    }
}

impl<S: Into<Scalar>> From<S> for Fill<'_> {
    fn from(value: S) -> Self {
        Fill::Scalar(value.into())
    }
}

impl<'a> From<&'a Tensor> for Fill<'a> {
    fn from(value: &'a Tensor) -> Self {
        Fill::Tensor(value)
    }
}
