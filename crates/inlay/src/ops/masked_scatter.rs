//! `masked_scatter`: elements of a source, in order, to the true places of a mask.

use inlay_core::{Meta, Result};
use serde::{Deserialize, Serialize};

use super::broadcast::{expect_mask_for, stretch};
use crate::array::Array;
use crate::autograd::{Grads, Rule, Saves};
use crate::funnel::{Op, Out, apply, apply_in_place};
use crate::{Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct MaskedScatter;

impl Op for MaskedScatter {
    fn name(&self) -> &'static str {
        "masked_scatter"
    }

    fn target(&self) -> &'static str {
        "input"
    }

    fn arg(&self, k: usize) -> String {
        ["input", "mask", "source"][k].into()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x, mask, source] = inputs else { unreachable!("three inputs") };
        expect_mask_for(self.name(), mask, x)?;
        source.expect_dtype_of(self.name(), "source", x, "input")?;
        Ok(x.clone())
    }

    fn run(&self, inputs: &[&Array], out: Out) -> Result<Array> {
        let [x, mask, source] = inputs else { unreachable!("three inputs") };
        let op = self.name();
        let mask = stretch(op, "mask", mask, x.shape())?;
        let bits = device::bits(&mask)?;
        bits.expect_source(op, "source", source.layout.numel())?;
        let contiguous;
        let source = if source.is_contiguous() {
            source
        } else {
            contiguous = device::to_contiguous(op, source)?;
            &contiguous
        };
        let (to, base) = out.of(op, x)?;
        device::expand(&to, base, &bits, source)?;
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
            _ => {
                // The source's first elements were used, in order; the rest get nothing.
                let used = rule.g().masked_select(&mask)?;
                let all = rule.zeros(2)?.reshape(&[-1])?.dims();
                used.among_zeros(&all)?.shaped(rule.shape(2)).map(Some)
            }
        })
    }
}

impl Tensor {
    /// A copy in which the k-th true place of `mask`, in row-major order, is the k-th element of
    /// `source`, in row-major order.
    ///
    /// The mask is bool and broadcasts to this shape. The source may have any shape, and more
    /// elements than are needed.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[0i32; 4], &[2, 2])?;
    /// let mask = Tensor::from_slice(&[true, false], &[2])?;
    /// let source = Tensor::from_slice(&[7, 8, 9], &[3])?;
    /// assert_eq!(x.masked_scatter(&mask, &source)?.to_vec::<i32>()?, [7, 0, 8, 0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A mask that is not bool or does not broadcast, dtypes that differ, a source with fewer
    /// elements than the mask selects.
    #[track_caller]
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
        apply(MaskedScatter, &[self, mask, source])
    }

    /// [`Tensor::masked_scatter`] in place.
    ///
    /// # Errors
    /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
    #[track_caller]
    pub fn masked_scatter_(&self, mask: &Tensor, source: &Tensor) -> Result<&Self> {
        apply_in_place(MaskedScatter, self, &[mask, source]).map(|()| self)
    }
}
