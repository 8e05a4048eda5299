//! Sizes as values: the numbers along an axis, and element counts. Gradients and index arithmetic
//! use them, because sizes may be known only when a program runs.

use inlay_core::{DType, Dim, Dims, Error, Meta, Result};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::create::ARANGE;
use super::shape::as_many;
use crate::array::{Array, known};
use crate::declare::{Operation, declare};
use crate::funnel::apply_beside;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::Rule;
use crate::{Scalar, Tensor, device};

declare! {
    COUNT = "count"();
}

/// The numbers `0, 1, 2, …` along an axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct AxisNumbers {
    len: Dim,
}

impl Op for AxisNumbers {
    type Inputs = Inputs<0>;
    type Found = ();
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        &ARANGE
    }

    fn infer(&self, _: &[Meta; 0]) -> Result<Inferred<()>> {
        if let Some(len) = self.len.known().filter(|len| isize::try_from(*len).is_err()) {
            return Err(Error::TooLarge { op: self.name(), shape: vec![len] });
        }
        Inferred::only(Meta { dtype: DType::I64, shape: smallvec![self.len] })
    }

    fn run(&self, _: &[&Array; 0], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let end = known(self.len) as i64;
        Ok(Tensor::arange(0, end, 1, DType::I64)?.array().clone())
    }

    fn sizes(&self) -> Dims {
        smallvec![self.len]
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        let &[len] = sizes else { return None };
        Some(AxisNumbers { len })
    }
}

/// The product of sizes, but at least 1, as a 0-D tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Count {
    sizes: Dims,
}

impl Op for Count {
    type Inputs = Inputs<0>;
    type Found = ();
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        &COUNT
    }

    fn infer(&self, _: &[Meta; 0]) -> Result<Inferred<()>> {
        Inferred::only(Meta { dtype: DType::I64, shape: Dims::new() })
    }

    fn run(&self, _: &[&Array; 0], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let count = self.sizes.iter().fold(1usize, |n, dim| n.saturating_mul(known(*dim)));
        let to = Array::new(self.name(), DType::I64, &[])?;
        device::store(&to, &[i64::try_from(count.max(1)).unwrap_or(i64::MAX)])?;
        Ok(to)
    }

    fn sizes(&self) -> Dims {
        self.sizes.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        as_many(sizes, &self.sizes).map(|sizes| Count { sizes })
    }
}

impl Rule<'_> {
    /// Returns zeros with the shape and dtype of input `k`. They share the memory of one number.
    pub(crate) fn zeros(&self, k: usize) -> Result<Tensor> {
        self.g().stretched(self.shape(k), false, self.meta(k).dtype)
    }
}

impl Tensor {
    /// Returns `0, 1, 2, …` with `len` elements, on this tensor's device or in its program.
    pub(crate) fn numbers(&self, len: Dim) -> Result<Tensor> {
        apply_beside(self, AxisNumbers { len }, &[])
    }

    /// Returns the product of `sizes`, but at least 1, as a 0-D tensor, on this tensor's device or
    /// in its program.
    pub(crate) fn count(&self, sizes: &[Dim], dtype: DType) -> Result<Tensor> {
        apply_beside(self, Count { sizes: Dims::from_slice(sizes) }, &[])?.narrowed(dtype)
    }

    /// Returns a tensor of `shape` filled with a number, on this tensor's device or in its program.
    pub(crate) fn filled(
        &self,
        shape: &[Dim],
        value: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Tensor> {
        self.stretched(shape, value, dtype)?.copy()
    }

    /// Like [`Tensor::filled`], but all elements share the memory of one number. It must not be
    /// written.
    pub(crate) fn stretched(
        &self,
        shape: &[Dim],
        value: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Tensor> {
        let value = value.into().to_tensor("full", "fill_value", dtype)?;
        apply_beside(self, super::stretch::BroadcastTo::new(shape), &[&value])
    }
}
