//! `cast`: the same numbers in another dtype.

use inlay_core::{DType, Error, Kind, Meta, Result};
use serde::{Deserialize, Serialize};

use crate::declare::{Operation, declare};
use crate::array::Array;
use crate::tape::{Grads, Rule};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::{Tensor, device};

declare! {
    /// A copy in another dtype.
    ///
    /// Floats become integers by cutting off the fraction, ending at the type's ends, NaN at 0;
    /// integers wrap; whatever is not 0 is true. Complex numbers become only complex ones or bool.
    ///
    /// >>> import inlay
    /// >>> inlay.cast([1.5, -1.5, 300.0], 'uint8')
    /// array([  1,   0, 255], dtype=uint8)
    CAST = "cast"(x: Tensor, dtype: Type) gradients [x] => x.cast(dtype);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Cast {
    dtype: DType,
}

impl Op for Cast {
    type Inputs = Inputs<1>;
    type Found = ();

    fn operation(&self) -> &'static Operation {
        &CAST
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        let real = !matches!(self.dtype.kind(), Kind::Complex | Kind::Bool);
        if x.dtype.kind() == Kind::Complex && real {
            let what = format!("a cast to {}, which drops the imaginary part,", self.dtype);
            return Err(Error::Undefined { op: self.name(), what, dtype: x.dtype });
        }
        Inferred::only(Meta { dtype: self.dtype, shape: x.shape.clone() })
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        device::to_dtype(self.name(), x, self.dtype)
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
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

    /// In a dtype that holds sums and products of many: 16-bit floats in 32 bits.
    pub(crate) fn widened(&self) -> Result<Tensor> {
        match self.dtype() {
            DType::F16 | DType::BF16 => self.cast(DType::F32),
            _ => Ok(self.clone()),
        }
    }

    /// Back from [`Tensor::widened`].
    pub(crate) fn narrowed(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.cast(dtype) }
    }
}
