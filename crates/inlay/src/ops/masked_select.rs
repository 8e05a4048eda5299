//! `masked_select`: reads the elements at the true places of a mask, in order.

use inlay_core::{Dim, Meta, Result};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::broadcast::{expect_mask_for, stretch};
use super::masked_scatter::MaskedScatter;
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Tensor, device};

declare! {
    /// The elements at the true places of `mask`, 1-D, in row-major order.
    ///
    /// The mask is bool and broadcasts to x's shape.
    ///
    /// >>> import inlay
    /// >>> inlay.masked_select([[1, 2], [3, 4]], [True, False])
    /// array([1, 3])
    MASKED_SELECT = "masked_select"(x: Tensor, mask: Mask, name: Label = None)
        gradients [x]
        => x.masked_select(mask);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct MaskedSelect;

impl Op for MaskedSelect {
    type Inputs = Inputs<2>;
    type Found = ();

    fn operation(&self) -> &'static Operation {
        &MASKED_SELECT
    }

    fn infer(&self, [x, mask]: &[Meta; 2]) -> Result<Inferred<()>> {
        expect_mask_for(self.name(), mask, x)?;
        // The number of true places depends on the values of the mask.
        Inferred::only(x.with_shape(smallvec![Dim::unknown()]))
    }

    fn run(&self, [x, mask]: &[&Array; 2], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let mask = stretch(self.name(), "mask", mask, x.shape())?;
        let bits = device::bits(&mask)?;
        let to = x.beside(self.name(), x.dtype, &[bits.ones()?])?;
        device::compress(&to, x, &bits)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        let mask = rule.input(1)?;
        rule.each(|k| {
            apply(MaskedScatter::KEEPS_SHAPE, &[&rule.zeros(k)?, &mask, rule.g()]).map(Some)
        })
    }
}

impl Tensor {
    /// Returns the elements at the true places of `mask` as a 1-D tensor in row-major order. The
    /// mask is bool and broadcasts to the shape of this tensor.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2, 3]);
    /// assert_eq!(x.masked_select(&x.not_equal(2)?)?.to_vec::<i32>()?, [1, 3]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A mask that is not bool or does not broadcast.
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        apply(MaskedSelect, &[self, mask])
    }

    /// Returns the row-major positions at which this bool tensor is true.
    pub(super) fn true_places(&self) -> Result<Tensor> {
        let flat = self.reshape(&[-1])?;
        self.numbers(flat.dims()[0])?.masked_select(&flat)
    }
}
