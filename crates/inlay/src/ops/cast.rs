//! `cast`: converts the elements to another dtype.

use inlay_core::{DType, Error, Kind, Meta, Result};
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule};
use crate::{Tensor, device};

declare! {
    /// A copy in another dtype.
    ///
    /// Floats become integers by dropping the fraction; values out of range saturate, and NaN
    /// becomes 0. Integers wrap. Every value other than 0 is true. Complex numbers can be cast only
    /// to complex dtypes and bool.
    ///
    /// >>> import inlay
    /// >>> inlay.cast([1.5, -1.5, 300.0], 'uint8')
    /// array([  1,   0, 255], dtype=uint8)
    CAST = "cast"(x: Tensor, dtype: Type) gradients [x]
        batch Elements => x.cast(dtype);

    /// A copy in another dtype: another name of ``cast``.
    ///
    /// >>> import inlay
    /// >>> inlay.astype([1.5, -1.5], 'int64')
    /// array([ 1, -1])
    ASTYPE = "astype"(x: Tensor, dtype: Type) gradients [x]
        batch Elements => x.cast(dtype);
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
        Inferred::only(Meta { dtype: self.dtype, shape: x.dims() })
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        device::to_dtype(self.name(), x, self.dtype)
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        // If a real input became complex, the real part of the gradient is its gradient.
        let real =
            rule.g().dtype().kind() == Kind::Complex && rule.meta(0).dtype.kind() != Kind::Complex;
        rule.each(|k| {
            let g = if real { rule.g().real()? } else { rule.g().clone() };
            g.narrowed(rule.meta(k).dtype).map(Some)
        })
    }
}

impl Tensor {
    /// Returns a copy in another dtype.
    ///
    /// Floats become integers by dropping the fraction; values out of range saturate, and NaN
    /// becomes 0. Integers wrap. Every value other than 0 is true.
    ///
    /// ```
    /// # use inlay::{DType, Tensor};
    /// let x = Tensor::from([1.75f32, -2.5]);
    /// assert_eq!(x.cast(DType::I32)?.to_vec::<i32>()?, [1, -2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A cast from complex numbers to real ones.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        apply(Cast { dtype }, &[self])
    }

    /// Returns the tensor in a dtype that holds sums and products of many elements: `f32` for
    /// 16-bit floats.
    pub(crate) fn widened(&self) -> Result<Tensor> {
        match self.dtype() {
            DType::F16 | DType::BF16 => self.cast(DType::F32),
            _ => Ok(self.clone()),
        }
    }

    /// Casts to `dtype`, without a copy if the tensor has it already.
    pub(crate) fn narrowed(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.cast(dtype) }
    }
}
