//! `negative`, `conjugate`, and the real part of a complex tensor.

use inlay_core::{DType, Error, Kind, Meta, Result, Unary};
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Pointwise(Unary);

impl Op for Pointwise {
    fn name(&self) -> &'static str {
        match self.0 {
            Unary::Negative => "negative",
            Unary::Conjugate => "conjugate",
        }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        if x.dtype == DType::Bool && self.0 == Unary::Negative {
            let what = "a sign".into();
            return Err(Error::Undefined { op: self.name(), what, dtype: x.dtype });
        }
        Ok(x.clone())
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        let to = x.new_like(self.name())?;
        device::unary(self.0, &to, x)?;
        Ok(to)
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|_| apply(Pointwise(self.0), &[rule.g()]).map(Some))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Real;

impl Op for Real {
    fn name(&self) -> &'static str {
        "real"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        Ok(Meta { dtype: real_dtype(x.dtype), shape: x.shape.clone() })
    }

    /// The real part of a complex number comes first, so that of a tensor is a view.
    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        Ok(Array { dtype: real_dtype(x.dtype), ..(*x).clone() })
    }

    fn is_view(&self) -> bool {
        true
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|k| rule.g().narrowed(rule.meta(k).dtype).map(Some))
    }
}

fn real_dtype(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        real => real,
    }
}

impl Tensor {
    /// Every number with the other sign; integers wrap.
    ///
    /// # Errors
    /// Bools have no sign.
    #[track_caller]
    pub fn negative(&self) -> Result<Tensor> {
        apply(Pointwise(Unary::Negative), &[self])
    }

    /// The complex conjugate; a real tensor is its own.
    ///
    /// # Errors
    /// When there is not enough memory.
    #[track_caller]
    pub fn conjugate(&self) -> Result<Tensor> {
        match self.dtype().kind() {
            Kind::Complex => apply(Pointwise(Unary::Conjugate), &[self]),
            _ => Ok(self.clone()),
        }
    }

    /// The real part, as a view; a real tensor is its own.
    ///
    /// # Errors
    /// None that input can cause.
    #[track_caller]
    pub fn real(&self) -> Result<Tensor> {
        apply(Real, &[self])
    }
}
