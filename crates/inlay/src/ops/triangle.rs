//! `tril` and `triu`: keep a triangle of each matrix and set the rest to 0.

use inlay_core::{Integer, Meta, Result, Triangle};
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule};
use crate::{Tensor, device};

declare! {
    /// A copy of x that is 0 above a diagonal of its last two axes.
    ///
    /// >>> import inlay
    /// >>> inlay.tril([[1, 2], [3, 4]])
    /// array([[1, 0],
    ///        [3, 4]])
    TRIL = "tril"(x: Tensor, diagonal: Bound = 0, name: Label = None)
        gradients [x]
        batch Axes
        => x.tril(diagonal);

    /// A copy of x that is 0 below a diagonal of its last two axes.
    ///
    /// >>> import inlay
    /// >>> inlay.triu([[1, 2], [3, 4]])
    /// array([[1, 2],
    ///        [0, 4]])
    TRIU = "triu"(x: Tensor, diagonal: Bound = 0, name: Label = None)
        gradients [x]
        batch Axes
        => x.triu(diagonal);
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct KeepTriangle {
    triangle: Triangle,
    diagonal: i64,
}

impl Op for KeepTriangle {
    type Inputs = Inputs<1>;
    type Found = ();

    fn operation(&self) -> &'static Operation {
        match self.triangle {
            Triangle::Lower => &TRIL,
            Triangle::Upper => &TRIU,
        }
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        x.expect_rank_at_least(self.name(), "x", 2)?;
        Inferred::only(x.clone())
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let to = x.new_like(self.name())?;
        device::keep_triangle(&to, x, self.triangle, self.diagonal)?;
        Ok(to)
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|_| apply(*self, &[rule.g()]).map(Some))
    }
}

impl Tensor {
    /// Returns a copy that is 0 above the diagonal `diagonal` of the last two axes.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.tril(0)?.to_vec::<i32>()?, [1, 0, 3, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fewer than two dimensions.
    #[track_caller]
    pub fn tril(&self, diagonal: impl Integer) -> Result<Tensor> {
        apply(KeepTriangle { triangle: Triangle::Lower, diagonal: diagonal.to_i64() }, &[self])
    }

    /// Returns a copy that is 0 below the diagonal `diagonal` of the last two axes.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.triu(1)?.to_vec::<i32>()?, [0, 2, 0, 0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fewer than two dimensions.
    #[track_caller]
    pub fn triu(&self, diagonal: impl Integer) -> Result<Tensor> {
        apply(KeepTriangle { triangle: Triangle::Upper, diagonal: diagonal.to_i64() }, &[self])
    }
}
