//! `concat` and `stack`: tensors one after the other.

use inlay_core::{Dim, Dims, Error, Meta, Result, Slice, axis_of, expect_shape};
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::operation::Name;
use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Concat {
    name: Name,
    axis: i64,
}

impl Op for Concat {
    fn name(&self) -> &'static str {
        self.name.0
    }

    fn arg(&self, k: usize) -> String {
        format!("x[{k}]")
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let op = self.name();
        let Some(first) = inputs.first() else {
            let (got, expected) = ("empty".into(), "at least one tensor".into());
            return Err(Error::Argument { op, arg: "x", got, expected });
        };
        first.expect_rank_at_least(op, "x", 1)?;
        let axis = axis_of(op, "axis", self.axis, first.rank())?;
        let mut shape = first.shape.clone();
        let mut total = Some(0usize);
        for input in inputs {
            input.expect_dtype_of(op, "x", first, "the first of them")?;
            let mut expected = first.shape.clone();
            expected[axis] = input.shape.get(axis).copied().unwrap_or(expected[axis]);
            expect_shape(op, "x", &input.shape, &expected)?;
            total = total.zip(expected[axis].known()).map(|(a, b)| a.saturating_add(b));
            if total.is_some_and(|total| isize::try_from(total).is_err()) {
                let shape = expected.iter().map(|dim| dim.known().unwrap_or(0)).collect();
                return Err(Error::TooLarge { op, shape });
            }
        }
        shape[axis] = total.map_or_else(Dim::unknown, Dim::Known);
        Ok(first.with_shape(shape))
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let axis = axis_of(self.name(), "axis", self.axis, inputs[0].shape().len())?;
        let mut shape = inputs[0].shape().to_vec();
        shape[axis] = inputs.iter().map(|input| input.shape()[axis]).sum();
        let to = inputs[0].beside(self.name(), inputs[0].dtype, &shape)?;
        let mut start = 0;
        for input in inputs {
            let len = input.shape()[axis];
            let part = Slice::new(start as i64, (start + len) as i64, 1).resolve(shape[axis]);
            let part = part.unwrap_or_else(|| unreachable!("the step is 1"));
            device::copy(&to.with_layout(to.layout.slice(axis, part)), input)?;
            start += len;
        }
        Ok(to)
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let axis = axis_of(self.name(), "axis", self.axis, rule.g().rank())?;
        rule.each(|k| {
            let before: Dims = (0..k).map(|k| rule.shape(k)[axis]).collect();
            rule.g().block(&Block::after(&before, axis, rule.shape(k))).map(Some)
        })
    }
}

impl Tensor {
    /// The tensors one after the other along `axis`; other sizes and dtypes are the same.
    ///
    /// # Errors
    /// No tensors, shapes or dtypes that differ, an axis out of range.
    #[track_caller]
    pub fn concat(tensors: &[&Tensor], axis: i64) -> Result<Tensor> {
        apply(Concat { name: Name("concat"), axis }, tensors)
    }

    /// The tensors along a new axis before `axis`; sizes and dtypes are the same.
    ///
    /// # Errors
    /// No tensors, shapes or dtypes that differ, an axis out of range.
    #[track_caller]
    pub fn stack(tensors: &[&Tensor], axis: i64) -> Result<Tensor> {
        let op = "stack";
        let rank = tensors.first().map_or(0, |tensor| tensor.rank()) + 1;
        let axis = axis_of(op, "axis", axis, rank)?;
        let rows = tensors
            .iter()
            .map(|tensor| tensor.fitting(op, "x", &tensors[0].dims())?.merged(axis, 0));
        let rows = rows.collect::<Result<Vec<Tensor>>>()?;
        apply(Concat { name: Name(op), axis: axis as i64 }, &rows.iter().collect::<Vec<_>>())
    }
}
