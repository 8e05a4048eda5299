//! `tril` and `triu`: a triangle of each matrix, and zeros beside it.

use inlay_core::{Meta, Result, Triangle};
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct KeepTriangle {
    triangle: Triangle,
    diagonal: i64,
}

impl Op for KeepTriangle {
    fn name(&self) -> &'static str {
        match self.triangle {
            Triangle::Lower => "tril",
            Triangle::Upper => "triu",
        }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        x.expect_rank_at_least(self.name(), "x", 2)?;
        Ok(x.clone())
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        let to = x.new_like(self.name())?;
        device::keep_triangle(&to, x, self.triangle, self.diagonal)?;
        Ok(to)
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|_| apply(*self, &[rule.g()]).map(Some))
    }
}

impl Tensor {
    /// A copy that is 0 above the diagonal `diagonal` of the last two axes.
    ///
    /// # Errors
    /// Fewer than two dimensions.
    #[track_caller]
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        apply(KeepTriangle { triangle: Triangle::Lower, diagonal }, &[self])
    }

    /// A copy that is 0 below the diagonal `diagonal` of the last two axes.
    ///
    /// # Errors
    /// Fewer than two dimensions.
    #[track_caller]
    pub fn triu(&self, diagonal: i64) -> Result<Tensor> {
        apply(KeepTriangle { triangle: Triangle::Upper, diagonal }, &[self])
    }
}
