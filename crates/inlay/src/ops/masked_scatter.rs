//! `masked_scatter`: writes the elements of a source, in order, to the true places of a mask.

use inlay_core::{Error, Meta, ResolvedSlice, Result, ShapeText, broadcast_dims};
use serde::{Deserialize, Serialize};

use super::broadcast::{expect_mask_for, stretch};
use crate::array::{Array, sizes};
use crate::declare::{Operation, declare};
use crate::funnel::{apply, apply_in_place};
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Tensor, device};

declare! {
    /// Write the elements of `source`, in order, to the true places of `mask`.
    ///
    /// The k-th true place of the mask, in row-major order, takes the k-th element of the source,
    /// in row-major order.
    ///
    /// Args:
    ///     input: the tensor to start from.
    ///     mask: bool. The input and the mask broadcast together, and the result has their common
    ///         shape. In place, only the mask is broadcast.
    ///     source: of input's dtype, any shape, and at least as many elements as the mask selects.
    ///     name: the label of the node in a static graph.
    ///
    /// Returns:
    ///     A fresh tensor, or a NumPy array if no argument was a Tensor.
    ///
    /// Raises:
    ///     ValueError: a mask that does not broadcast, a source with too few elements.
    ///     TypeError: a mask that is not bool, dtypes that differ.
    ///
    /// >>> import inlay, numpy as np
    /// >>> x = np.zeros((2, 3), dtype=int)
    /// >>> inlay.masked_scatter(x, [[True, False, True], [False, True, False]], [1, 2, 3, 4])
    /// array([[1, 0, 2],
    ///        [0, 3, 0]])
    MASKED_SCATTER = "masked_scatter"(
        input: Tensor, mask: Mask, source | value: Like, name: Label = None
    )
        gradients [input, source]
        twin out => {
            let stretch_input = out == Out::Fresh;
            out.apply(MaskedScatter { stretch_input }, &[input, mask, source])
        };
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct MaskedScatter {
    /// Whether the input is broadcast, too. A write in place broadcasts only the mask.
    stretch_input: bool,
}

impl MaskedScatter {
    /// The operation whose result has the shape of its input.
    pub(super) const KEEPS_SHAPE: MaskedScatter = MaskedScatter { stretch_input: false };
}

impl Op for MaskedScatter {
    type Inputs = Inputs<3>;
    type Found = ();
    const WRITES: bool = true;

    fn operation(&self) -> &'static Operation {
        &MASKED_SCATTER
    }

    fn infer(&self, [x, mask, source]: &[Meta; 3]) -> Result<Inferred<()>> {
        let op = self.name();
        if !self.stretch_input {
            expect_mask_for(op, mask, x)?;
            source.expect_dtype_of(op, "source", x, "input")?;
            return Inferred::only(x.clone());
        }
        mask.expect_mask(op, "mask")?;
        source.expect_dtype_of(op, "source", x, "input")?;
        if mask.shape == x.shape {
            return Inferred::only(x.clone());
        }
        let shape = broadcast_dims(&[&x.shape, &mask.shape]).ok_or_else(|| {
            let (got, to) = (ShapeText::of(&mask.shape), ShapeText::of(&x.shape));
            Error::Broadcast { op, arg: "mask", got, to }
        })?;
        Inferred::only(x.with_shape(shape))
    }

    fn run(
        &self,
        [x, mask, source]: &[&Array; 3],
        inferred: &Inferred<()>,
        out: Out,
    ) -> Result<Array> {
        let op = self.name();
        let shape = sizes(&inferred.meta.shape);
        let mask = stretch(op, "mask", mask, &shape)?;
        let bits = device::bits(&mask)?;
        bits.expect_source(op, "source", source.layout.numel())?;
        let contiguous;
        let source = if source.is_contiguous() {
            source
        } else {
            contiguous = device::to_contiguous(op, &rows_of(source, bits.counted()))?;
            &contiguous
        };
        if *x.shape() != *shape {
            // The result is larger than the input, so it can't be written there.
            let base = stretch(op, "input", x, &shape)?;
            let to = base.new_like(op)?;
            device::expand(&to, Some(&base), source, &bits)?;
            return Ok(to);
        }
        let (to, base) = out.of(op, x)?;
        device::expand(&to, base, source, &bits)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        let mask = rule.input(1)?;
        rule.each(|k| match k {
            0 => rule.g().masked_fill(&mask, 0)?.shrink_to(rule.shape(0)).map(Some),
            _ => {
                // The first elements of the source were used, in order. The others get a gradient
                // of 0.
                let used = rule.g().masked_select(&mask)?;
                let all = rule.zeros(2)?.reshape(&[-1])?.dims();
                used.among_zeros(&all)?.shaped(rule.shape(2)).map(Some)
            }
        })
    }
}

/// Returns the rows of the source, along its first axis, that have the first `count` elements.
fn rows_of(source: &Array, count: Option<usize>) -> Array {
    let (Some(count), Some(&rows)) = (count, source.shape().first()) else { return source.clone() };
    let row = (source.layout.numel() / rows.max(1)).max(1);
    let used = ResolvedSlice::run(0, count.div_ceil(row).min(rows));
    source.with_layout(source.layout.slice(0, used))
}

impl Tensor {
    /// Returns a copy in which the k-th true place of `mask`, in row-major order, is the k-th
    /// element of `source`, in row-major order.
    ///
    /// The mask is bool. This tensor and the mask broadcast together, and the result has their
    /// common shape. The source may have any shape, and more elements than are needed.
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
        apply(MaskedScatter { stretch_input: true }, &[self, mask, source])
    }

    /// The in-place version of [`Tensor::masked_scatter`]. Only the mask is broadcast.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2, 3]);
    /// x.masked_scatter_(&Tensor::from([true, false, true]), &Tensor::from([8, 9]))?;
    /// assert_eq!(x.to_vec::<i32>()?, [8, 2, 9]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::masked_scatter`]; also memory that is read-only or overlaps itself.
    /// After an error, nothing was written.
    #[track_caller]
    pub fn masked_scatter_(&self, mask: &Tensor, source: &Tensor) -> Result<&Self> {
        apply_in_place(MaskedScatter::KEEPS_SHAPE, &[self, mask, source]).map(|_| self)
    }
}
