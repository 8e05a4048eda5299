//! `concat` and `stack`: join tensors along an axis.

use std::borrow::Borrow;

use inlay_core::{Dim, Dims, Error, Integer, Meta, ResolvedSlice, Result, axis_of, expect_shape};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::block::Block;
use super::names::Caller;
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{AnyInputs, Inferred, Op, Out};
use crate::tape::{Grads, Rule};
use crate::{Tensor, device};

declare! {
    /// The tensors one after the other along `axis`.
    ///
    /// >>> import inlay
    /// >>> inlay.concat([[[1, 2]], [[3, 4]]])
    /// array([[1, 2],
    ///        [3, 4]])
    CONCAT = "concat"(x | tensors: Tensors, axis: Int = 0, name: Label = None)
        gradients [x]
        batch Axes
        => Tensor::concat(&x, axis);

    /// The tensors along a new axis.
    ///
    /// >>> import inlay
    /// >>> inlay.stack([[1, 2], [3, 4]], axis=1)
    /// array([[1, 3],
    ///        [2, 4]])
    STACK = "stack"(x | tensors: Tensors, axis: Int = 0, name: Label = None)
        gradients [x]
        batch Axes
        => Tensor::stack(&x, axis);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Concat {
    name: Caller,
    axis: i64,
}

impl Op for Concat {
    type Inputs = AnyInputs;
    type Found = usize;

    fn operation(&self) -> &'static Operation {
        self.name.0
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Inferred<usize>> {
        let op = self.name();
        let Some(first) = inputs.first() else {
            let (got, expected) = ("empty".into(), "at least one tensor".into());
            return Err(Error::Argument { op, arg: "x", got, expected });
        };
        first.expect_rank_at_least(op, "x", 1)?;
        let axis = axis_of(op, "axis", self.axis, first.rank())?;
        let mut shape = first.dims();
        let mut total = Some(0usize);
        for input in inputs {
            input.expect_dtype_of(op, "x", first, "the first of them")?;
            let mut expected = first.dims();
            expected[axis] = input.shape.get(axis).copied().unwrap_or(expected[axis]);
            expect_shape(op, "x", &input.shape, &expected)?;
            total = total.zip(expected[axis].known()).map(|(a, b)| a.saturating_add(b));
            if total.is_some_and(|total| isize::try_from(total).is_err()) {
                let shape = expected.iter().map(|dim| dim.known().unwrap_or(0)).collect();
                return Err(Error::TooLarge { op, shape });
            }
        }
        shape[axis] = total.map_or_else(Dim::unknown, Dim::Known);
        Inferred::new(first.with_shape(shape), axis)
    }

    fn run(&self, inputs: &[&Array], inferred: &Inferred<usize>, _out: Out) -> Result<Array> {
        let axis = inferred.found;
        let to = inputs[0].fresh(self.name(), &inferred.meta)?;
        let mut start = 0;
        for input in inputs {
            let len = input.shape()[axis];
            let part = ResolvedSlice::run(start, len);
            device::copy(&to.with_layout(to.layout.slice(axis, part)), input)?;
            start += len;
        }
        Ok(to)
    }

    fn grad(&self, rule: &Rule<'_>, found: &usize) -> Result<Grads> {
        let axis = *found;
        rule.each(|k| {
            let before: Dims = (0..k).map(|k| rule.shape(k)[axis]).collect();
            rule.g().block(&Block::after(&before, axis, rule.shape(k))).map(Some)
        })
    }
}

impl Tensor {
    /// Joins tensors along `axis`. Their dtypes and all other sizes must be equal.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let (a, b) = (Tensor::from([[1], [2]]), Tensor::from([[3], [4]]));
    /// assert_eq!(Tensor::concat(&[&a, &b], 1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// No tensors, shapes or dtypes that differ, an axis out of range.
    #[track_caller]
    pub fn concat(tensors: &[impl Borrow<Tensor>], axis: impl Integer) -> Result<Tensor> {
        apply(Concat { name: Caller(&CONCAT), axis: axis.to_i64() }, &borrowed(tensors))
    }

    /// Joins tensors along a new axis at position `axis`. Their dtypes and shapes must be equal.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let (a, b) = (Tensor::from([1, 2]), Tensor::from([3, 4]));
    /// let rows = Tensor::stack(&[a, b], 0)?;
    /// assert_eq!(rows.shape(), [2, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// No tensors, shapes or dtypes that differ, an axis out of range.
    #[track_caller]
    pub fn stack(tensors: &[impl Borrow<Tensor>], axis: impl Integer) -> Result<Tensor> {
        stack(&borrowed(tensors), axis.to_i64())
    }
}

fn borrowed(tensors: &[impl Borrow<Tensor>]) -> SmallVec<[&Tensor; 4]> {
    tensors.iter().map(Borrow::borrow).collect()
}

#[track_caller]
fn stack(tensors: &[&Tensor], axis: i64) -> Result<Tensor> {
    let op = STACK.name;
    let rank = tensors.first().map_or(0, |tensor| tensor.rank()) + 1;
    let axis = axis_of(op, "axis", axis, rank)?;
    let rows = tensors
        .iter()
        .map(|tensor| tensor.fitting(&STACK, "x", &tensors[0].dims())?.merged(axis, 0));
    let rows = rows.collect::<Result<Vec<Tensor>>>()?;
    apply(Concat { name: Caller(&STACK), axis: axis as i64 }, &rows.iter().collect::<Vec<_>>())
}
