//! `cast`: the same numbers in another dtype.

use inlay_core::{DType, Error, Kind, Meta, Result};
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Cast {
    dtype: DType,
}

impl Op for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        let real = !matches!(self.dtype.kind(), Kind::Complex | Kind::Bool);
        if x.dtype.kind() == Kind::Complex && real {
            let what = format!("a cast to {}, which drops the imaginary part,", self.dtype);
            return Err(Error::Undefined { op: self.name(), what, dtype: x.dtype });
        }
        Ok(Meta { dtype: self.dtype, shape: x.shape.clone() })
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        device::to_dtype(self.name(), x, self.dtype)
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        // Of a gradient that is complex because the number became so, the real part counts.
        let real =
            rule.g().dtype().kind() == Kind::Complex && rule.meta(0).dtype.kind() != Kind::Complex;
        rule.each(|k| {
            let g = if real { rule.g().real()? } else { rule.g().clone() };
            g.narrowed(rule.meta(k).dtype).map(Some)
        })
    }
}

impl Tensor {
    /// A copy in another dtype.
    ///
    /// Floats become integers by cutting off the fraction, ending at the type's ends, NaN at 0;
    /// integers wrap; whatever is not 0 is true.
    ///
    /// # Errors
    /// From complex to real numbers.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        apply(Cast { dtype }, &[self])
    }
}
