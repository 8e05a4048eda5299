//! Sizes as values: numbers along an axis, and how many elements there are. For gradients and index
//! arithmetic, where sizes may be known only when a program runs.

use inlay_core::{DType, Dim, Dims, Error, Meta, Result};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::broadcast::known;
use super::operation::Operation;
use super::shape::as_many;
use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply_beside};
use crate::{Scalar, Tensor, device};

/// `0, 1, 2, …`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Numbers {
    len: Dim,
}

impl Op for Numbers {
    fn name(&self) -> &'static str {
        "arange"
    }

    fn infer(&self, _inputs: &[Meta]) -> Result<Meta> {
        if let Some(len) = self.len.known().filter(|len| isize::try_from(*len).is_err()) {
            return Err(Error::TooLarge { op: self.name(), shape: vec![len] });
        }
        Ok(Meta { dtype: DType::I64, shape: smallvec![self.len] })
    }

    fn run(&self, _inputs: &[&Array], _out: Out) -> Result<Array> {
        let end = known(self.len) as i64;
        Ok(Tensor::arange(0, end, 1, DType::I64)?.array().clone())
    }

    fn sizes(&self) -> Dims {
        smallvec![self.len]
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Operation> {
        let &[len] = sizes else { return None };
        Some(Numbers { len }.into())
    }

    fn is_differentiable(&self) -> bool {
        false
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|_| Ok(None))
    }
}

/// The product of sizes, 0-D; at least 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Count {
    sizes: Dims,
}

impl Op for Count {
    fn name(&self) -> &'static str {
        "count"
    }

    fn infer(&self, _inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta { dtype: DType::I64, shape: Dims::new() })
    }

    fn run(&self, _inputs: &[&Array], _out: Out) -> Result<Array> {
        let count = self.sizes.iter().fold(1usize, |n, dim| n.saturating_mul(known(*dim)));
        let to = Array::new(self.name(), DType::I64, &[])?;
        device::store(&to, &[i64::try_from(count.max(1)).unwrap_or(i64::MAX)])?;
        Ok(to)
    }

    fn sizes(&self) -> Dims {
        self.sizes.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Operation> {
        as_many(sizes, &self.sizes).map(|sizes| Count { sizes }.into())
    }

    fn is_differentiable(&self) -> bool {
        false
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|_| Ok(None))
    }
}

impl Tensor {
    /// `0, 1, 2, …`, `len` of them, where this tensor is: eager, or in its program.
    pub(crate) fn numbers(&self, len: Dim) -> Result<Tensor> {
        apply_beside(self, Numbers { len }, &[])
    }

    /// The product of `sizes`, but at least 1, as a 0-D tensor where this one is.
    pub(crate) fn count(&self, sizes: &[Dim], dtype: DType) -> Result<Tensor> {
        apply_beside(self, Count { sizes: Dims::from_slice(sizes) }, &[])?.narrowed(dtype)
    }

    /// A number everywhere in `shape`, where this tensor is.
    pub(crate) fn filled(
        &self,
        shape: &[Dim],
        value: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Tensor> {
        self.stretched(shape, value, dtype)?.copy()
    }

    /// The same, in the memory of one number: to be read.
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
