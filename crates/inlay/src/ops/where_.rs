//! `where`: takes each element from one of two tensors, depending on a condition.

use inlay_core::{Error, Meta, Result, ShapeText, broadcast_dims};
use serde::{Deserialize, Serialize};

use super::broadcast::{common, stretch};
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Tensor, device};

declare! {
    /// The elements of `x` where `condition` is true, else those of `y`.
    ///
    /// The condition is bool, x and y have the same dtype, and the shapes broadcast as in NumPy.
    ///
    /// >>> import inlay
    /// >>> inlay.where([True, False, True], [1, 2, 3], 0)
    /// array([1, 0, 3])
    WHERE = "where"(condition: Mask, x: Operand, y: Operand, name: Label = None)
        gradients [x, y]
        batch Elements
        => condition.where_(x, y);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Where;

impl Op for Where {
    type Inputs = Inputs<3>;
    type Found = ();

    fn operation(&self) -> &'static Operation {
        &WHERE
    }

    fn infer(&self, [condition, x, y]: &[Meta; 3]) -> Result<Inferred<()>> {
        let op = self.name();
        condition.expect_mask(op, "condition")?;
        let both = common(op, x, y)?;
        match broadcast_dims(&[&condition.shape, &both.shape]) {
            Some(shape) => Inferred::only(both.with_shape(shape)),
            None => {
                let a = ShapeText::of(&condition.shape);
                Err(Error::BroadcastTogether { op, a, b: ShapeText::of(&both.shape) })
            }
        }
    }

    fn run(
        &self,
        [condition, x, y]: &[&Array; 3],
        inferred: &Inferred<()>,
        _out: Out,
    ) -> Result<Array> {
        let op = self.name();
        let to = x.fresh(op, &inferred.meta)?;
        let condition = stretch(op, "condition", condition, to.shape())?;
        let (x, y) = (stretch(op, "x", x, to.shape())?, stretch(op, "y", y, to.shape())?);
        device::blend(&to, Some(&y), &condition, &x)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[0])
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        let (g, condition) = (rule.g(), rule.input(0)?);
        let nothing = Tensor::number(self.name(), "x", false, g.dtype())?;
        rule.each(|k| {
            let grad = match k {
                1 => condition.where_(g, &nothing)?,
                _ => condition.where_(&nothing, g)?,
            };
            grad.shrink_to(rule.shape(k)).map(Some)
        })
    }
}

impl Tensor {
    /// Returns the elements of `x` where this bool tensor is true, else those of `y`.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, -2, 3]);
    /// let y = x.greater_than(0)?.where_(&x, &Tensor::from(0))?;
    /// assert_eq!(y.to_vec::<i32>()?, [1, 0, 3]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A condition that is not bool, dtypes that differ, shapes that don't broadcast together.
    #[track_caller]
    pub fn where_(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        apply(Where, &[self, x, y])
    }
}
