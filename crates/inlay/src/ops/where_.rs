//! `where`: from one tensor or another, as a condition says.

use inlay_core::{Error, Meta, Result, ShapeText, broadcast_dims};
use serde::{Deserialize, Serialize};

use super::broadcast::{common, sizes, stretch};
use crate::array::Array;
use crate::autograd::{Grads, Rule, Saves};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Where;

impl Op for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn arg(&self, k: usize) -> String {
        ["condition", "x", "y"][k].into()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [condition, x, y] = inputs else { unreachable!("three inputs") };
        let op = self.name();
        condition.expect_mask(op, "condition")?;
        let both = common(op, x, y)?;
        match broadcast_dims(&[&condition.shape, &both.shape]) {
            Some(shape) => Ok(both.with_shape(shape)),
            None => {
                let a = ShapeText::of(&condition.shape);
                Err(Error::BroadcastTogether { op, a, b: ShapeText::of(&both.shape) })
            }
        }
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [condition, x, y] = inputs else { unreachable!("three inputs") };
        let op = self.name();
        let meta = self.infer(&[condition.meta(), x.meta(), y.meta()])?;
        let to = x.beside(op, meta.dtype, &sizes(&meta.shape))?;
        let condition = stretch(op, "condition", condition, to.shape())?;
        let (x, y) = (stretch(op, "x", x, to.shape())?, stretch(op, "y", y, to.shape())?);
        device::select(&to, &condition, &x, Some(&y))?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[0])
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let (g, condition) = (rule.g(), rule.input(0)?);
        let nothing = Tensor::scalar(self.name(), "x", false, g.dtype())?;
        rule.each(|k| {
            let grad = match k {
                1 => condition.choose(g, &nothing)?,
                _ => condition.choose(&nothing, g)?,
            };
            grad.shrink_to(rule.shape(k)).map(Some)
        })
    }
}

impl Tensor {
    /// The elements of `x` where this bool tensor is true, else those of `y`.
    ///
    /// # Errors
    /// A condition that is not bool, dtypes that differ, shapes that don't broadcast together.
    #[track_caller]
    pub fn choose(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        apply(Where, &[self, x, y])
    }
}
