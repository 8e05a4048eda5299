//! `masked_fill`: writes one value to the true places of a mask.

use std::borrow::Borrow;

use inlay_core::{Meta, Result};
use serde::{Deserialize, Serialize};

use super::broadcast::{expect_mask_for, expect_single, stretch};
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::{apply, apply_in_place};
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Operand, Tensor, device};

declare! {
    /// Write one value to the true places of `mask`, which is bool and broadcasts to x's shape.
    ///
    /// `value` is a number that x's dtype takes, or a 0-D tensor of that dtype.
    ///
    /// >>> import inlay
    /// >>> inlay.masked_fill([1, 2, 3], [True, False, True], 0)
    /// array([0, 2, 0])
    MASKED_FILL = "masked_fill"(x: Tensor, mask: Mask, value: Like, name: Label = None)
        gradients [x, value]
        twin out => out.apply(MaskedFill, &[x, mask, value]);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct MaskedFill;

impl Op for MaskedFill {
    type Inputs = Inputs<3>;
    type Found = ();
    const WRITES: bool = true;

    fn operation(&self) -> &'static Operation {
        &MASKED_FILL
    }

    fn infer(&self, [x, mask, value]: &[Meta; 3]) -> Result<Inferred<()>> {
        expect_mask_for(self.name(), mask, x)?;
        value.expect_dtype_of(self.name(), "value", x, "x")?;
        expect_single(self.name(), value)?;
        Inferred::only(x.clone())
    }

    fn run(&self, [x, mask, value]: &[&Array; 3], _: &Inferred<()>, out: Out) -> Result<Array> {
        let op = self.name();
        let mask = stretch(op, "mask", mask, x.shape())?;
        let value = stretch(op, "value", value, x.shape())?;
        let (to, base) = out.of(op, x)?;
        device::blend(&to, base, &mask, &value)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        let mask = rule.input(1)?;
        rule.each(|k| match k {
            0 => rule.g().masked_fill(&mask, 0).map(Some),
            _ => rule.g().masked_select(&mask)?.sum(None, false).map(Some),
        })
    }
}

impl Tensor {
    /// Returns a copy in which the true places of `mask` are `value`, a plain number or a 0-D
    /// tensor.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1.0f32, -2.0, 3.0]);
    /// let y = x.masked_fill(&x.less_than(0)?, 0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 3.0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A mask that is not bool or does not broadcast, a value of another kind or shape.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, value: impl Operand) -> Result<Tensor> {
        let value = value.held(MASKED_FILL.name, "value", self)?;
        apply(MaskedFill, &[self, mask, value.borrow()])
    }

    /// The in-place version of [`Tensor::masked_fill`].
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2]);
    /// x.masked_fill_(&Tensor::from([true, false]), 9)?;
    /// assert_eq!(x.to_vec::<i32>()?, [9, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::masked_fill`]; also memory that is read-only or overlaps itself.
    /// After an error, nothing was written.
    #[track_caller]
    pub fn masked_fill_(&self, mask: &Tensor, value: impl Operand) -> Result<&Self> {
        let value = value.held(MASKED_FILL.name, "value", self)?;
        apply_in_place(MaskedFill, &[self, mask, value.borrow()]).map(|_| self)
    }
}
