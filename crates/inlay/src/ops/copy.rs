//! `copy`: the same elements in fresh memory.

use inlay_core::{Meta, Result};
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Copy;

impl Op for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        device::to_contiguous(self.name(), inputs[0])
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|_| Ok(Some(rule.g().clone())))
    }
}

impl Tensor {
    /// The same elements in fresh, contiguous memory.
    ///
    /// # Errors
    /// When there is not enough memory.
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        apply(Copy, &[self])
    }
}
