//! Comparisons, element by element.

use inlay_core::{Comparison, DType, Error, Kind, Meta, Result};
use serde::{Deserialize, Serialize};

use super::broadcast::{common, sizes, stretch};
use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Compare(Comparison);

impl Op for Compare {
    fn name(&self) -> &'static str {
        match self.0 {
            Comparison::Equal => "equal",
            Comparison::NotEqual => "not_equal",
            Comparison::Less => "less_than",
            Comparison::LessEqual => "less_equal",
            Comparison::Greater => "greater_than",
            Comparison::GreaterEqual => "greater_equal",
            Comparison::Same => "same",
        }
    }

    fn arg(&self, k: usize) -> String {
        ["x", "y"][k].into()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [a, b] = inputs else { unreachable!("two inputs") };
        let meta = common(self.name(), a, b)?;
        if self.0.is_order() && meta.dtype.kind() == Kind::Complex {
            let what = "an order".into();
            return Err(Error::Undefined { op: self.name(), what, dtype: meta.dtype });
        }
        Ok(Meta { dtype: DType::Bool, ..meta })
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [a, b] = inputs else { unreachable!("two inputs") };
        let op = self.name();
        let meta = self.infer(&[a.meta(), b.meta()])?;
        let to = a.beside(op, DType::Bool, &sizes(&meta.shape))?;
        let (a, b) = (stretch(op, "x", a, to.shape())?, stretch(op, "y", b, to.shape())?);
        device::compare(self.0, &to, &a, &b)?;
        Ok(to)
    }

    fn is_differentiable(&self) -> bool {
        false
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|_| Ok(None))
    }
}

impl Tensor {
    /// Whether elements are equal, or both NaN.
    pub(super) fn same_as(&self, other: &Tensor) -> Result<Tensor> {
        apply(Compare(Comparison::Same), &[self, other])
    }
}

macro_rules! comparison {
    ($($name:ident, $variant:ident, $text:literal);* $(;)?) => {
        impl Tensor { $(
            #[doc = concat!("Whether `x ", $text, " y`, element by element, as bool.")]
            ///
            /// # Errors
            /// Dtypes that differ, shapes that don't broadcast together, an order of complex
            /// numbers.
            #[track_caller]
            pub fn $name(&self, other: &Tensor) -> Result<Tensor> {
                apply(Compare(Comparison::$variant), &[self, other])
            }
        )* }
    };
}
comparison!(
    equal, Equal, "==";
    not_equal, NotEqual, "!=";
    less_than, Less, "<";
    less_equal, LessEqual, "<=";
    greater_than, Greater, ">";
    greater_equal, GreaterEqual, ">=";
);
