//! `index_select`: rows along an axis at the positions of a 1-D index.

use inlay_core::{Error, Meta, Reduce, Result, axis_of, resized};
use serde::{Deserialize, Serialize};

use super::operation::Name;
use crate::array::Array;
use crate::autograd::{Grads, Rule, Saves};
use crate::funnel::{Op, Out, apply};
use crate::{Scatter, Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct IndexSelect {
    /// What the user called.
    pub(super) name: Name,
    pub(super) axis: i64,
}

/// Fails unless `index` is a 1-D tensor of integers.
pub(super) fn expect_vector_index(op: &'static str, index: &Meta) -> Result<()> {
    index.expect_index(op, "index")?;
    match index.rank() {
        1 => Ok(()),
        got => Err(Error::Rank { op, arg: "index", got, expected: "1" }),
    }
}

impl Op for IndexSelect {
    fn name(&self) -> &'static str {
        self.name.0
    }

    fn arg(&self, k: usize) -> String {
        ["x", "index"][k].into()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x, index] = inputs else { unreachable!("two inputs") };
        x.expect_rank_at_least(self.name(), "x", 1)?;
        let axis = axis_of(self.name(), "axis", self.axis, x.rank())?;
        expect_vector_index(self.name(), index)?;
        let mut shape = x.shape.clone();
        shape[axis] = index.shape[0];
        Ok(x.with_shape(shape))
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x, index] = inputs else { unreachable!("two inputs") };
        let op = self.name();
        let axis = axis_of(op, "axis", self.axis, x.shape().len())?;
        let positions = device::positions(op, "index", index, axis, x.shape()[axis])?;
        let shape = resized(x.shape(), axis, index.layout.numel());
        let to = x.beside(op, x.dtype, &shape)?;
        device::gather_rows(&to, x, axis, &positions)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let how = Scatter::reduce(Reduce::Sum).axis(self.axis);
        rule.each(|k| rule.zeros(k)?.scatter(&rule.input(1)?, rule.g(), how).map(Some))
    }
}

impl Tensor {
    /// The rows along `axis` at the positions of a 1-D index, in its order.
    ///
    /// # Errors
    /// An index that is not 1-D or not of integers, an axis or an index out of range.
    #[track_caller]
    pub fn index_select(&self, index: &Tensor, axis: i64) -> Result<Tensor> {
        apply(IndexSelect { name: Name("index_select"), axis }, &[self, index])
    }
}
