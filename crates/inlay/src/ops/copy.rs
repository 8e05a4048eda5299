//! `copy`: copies the elements to fresh memory.

use inlay_core::{Meta, Result};
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule};
use crate::{Tensor, device};

declare! {
    COPY = "copy"(x: Tensor);
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Copy;

impl Op for Copy {
    type Inputs = Inputs<1>;
    type Found = ();

    fn operation(&self) -> &'static Operation {
        &COPY
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        Inferred::only(x.clone())
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        device::to_contiguous(self.name(), x)
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|_| Ok(Some(rule.g().clone())))
    }
}

impl Tensor {
    /// Returns a copy of the elements in fresh, contiguous memory.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2]);
    /// let y = x.copy()?;
    /// x.set(0, 9)?;
    /// assert_eq!(y.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not enough memory.
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        apply(Copy, &[self])
    }
}
