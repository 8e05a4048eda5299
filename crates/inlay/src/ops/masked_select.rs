//! `masked_select`: the true places of a mask, in order.

use inlay_core::{Dim, Meta, Result};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::broadcast::{expect_mask_for, stretch};
use crate::array::Array;
use crate::autograd::{Grads, Rule, Saves};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct MaskedSelect;

impl Op for MaskedSelect {
    fn name(&self) -> &'static str {
        "masked_select"
    }

    fn arg(&self, k: usize) -> String {
        ["x", "mask"][k].into()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x, mask] = inputs else { unreachable!("two inputs") };
        expect_mask_for(self.name(), mask, x)?;
        // How many are true is known only from the mask's values.
        Ok(x.with_shape(smallvec![Dim::unknown()]))
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x, mask] = inputs else { unreachable!("two inputs") };
        let mask = stretch(self.name(), "mask", mask, x.shape())?;
        let bits = device::bits(&mask)?;
        let to = x.beside(self.name(), x.dtype, &[bits.ones()?])?;
        device::compress(&to, x, &bits)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let mask = rule.input(1)?;
        rule.each(|k| rule.zeros(k)?.masked_scatter(&mask, rule.g()).map(Some))
    }
}

impl Tensor {
    /// The elements at the true places of `mask`, which is bool and broadcasts to this shape, as a
    /// 1-D tensor in row-major order.
    ///
    /// # Errors
    /// A mask that is not bool or does not broadcast.
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        apply(MaskedSelect, &[self, mask])
    }

    /// Where this bool tensor is true, counted in row-major order.
    pub(super) fn true_places(&self) -> Result<Tensor> {
        let flat = self.reshape(&[-1])?;
        self.numbers(flat.dims()[0])?.masked_select(&flat)
    }
}
