//! `broadcast_to`, what undoes it, and a check of a shape: operations whose sizes may be symbols.

use std::borrow::Cow;

use inlay_core::{Dim, Dims, Fold, Meta, Result, expect_shape};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::broadcast::{expect_stretch, sizes, stretch};
use super::operation::{Name, Operation};
use super::shape::{as_many, reshaped};
use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

/// Stretched to a shape by NumPy's rules.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct BroadcastTo {
    shape: Dims,
    /// What the user called, and what the tensor is called there.
    name: Name,
    arg: Name,
}

impl BroadcastTo {
    pub(super) fn new(shape: &[Dim]) -> Self {
        BroadcastTo::of("broadcast_to", "x", shape)
    }

    fn of(name: &'static str, arg: &'static str, shape: &[Dim]) -> Self {
        BroadcastTo { shape: Dims::from_slice(shape), name: Name(name), arg: Name(arg) }
    }
}

impl Op for BroadcastTo {
    fn name(&self) -> &'static str {
        self.name.0
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        let to = x.with_shape(self.shape.clone());
        expect_stretch(self.name(), self.arg.0, x, &to)?;
        Ok(to)
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        stretch(self.name(), "x", inputs[0], &sizes(&self.shape)).map(Cow::into_owned)
    }

    fn is_view(&self) -> bool {
        true
    }

    fn sizes(&self) -> Dims {
        self.shape.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Operation> {
        as_many(sizes, &self.shape).map(|shape| BroadcastTo { shape, ..self.clone() }.into())
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|k| rule.g().shrink_to(rule.shape(k)).map(Some))
    }
}

/// The same tensor, which must have a shape: a check that waits for sizes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Fit {
    shape: Dims,
    name: Name,
    arg: Name,
}

impl Op for Fit {
    fn name(&self) -> &'static str {
        self.name.0
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        expect_shape(self.name(), self.arg.0, &x.shape, &self.shape)?;
        Ok(x.clone())
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        Ok(inputs[0].clone())
    }

    fn is_view(&self) -> bool {
        true
    }

    fn sizes(&self) -> Dims {
        self.shape.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Operation> {
        as_many(sizes, &self.shape).map(|shape| Fit { shape, ..self.clone() }.into())
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|_| Ok(Some(rule.g().clone())))
    }
}

/// The sum over the axes along which a shape was stretched: what [`BroadcastTo`] is undone by.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct ShrinkTo {
    shape: Dims,
}

impl Op for ShrinkTo {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        let to = x.with_shape(self.shape.clone());
        expect_stretch(self.name(), "shape", &to, x)?;
        Ok(to)
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        let shape = sizes(&self.shape);
        if *x.shape() == *shape {
            return Ok((*x).clone());
        }
        let extra = x.shape().len() - shape.len();
        let over: SmallVec<[bool; 6]> = (0..x.shape().len())
            .map(|axis| axis < extra || (shape[axis - extra] == 1 && x.shape()[axis] != 1))
            .collect();
        let kept: SmallVec<[usize; 6]> = x
            .shape()
            .iter()
            .zip(&over)
            .filter(|(_, over)| !**over)
            .map(|(&size, _)| size)
            .collect();
        let to = x.beside(self.name(), x.dtype, &kept)?;
        device::fold(Fold::Sum, &to, x, &over)?;
        reshaped(self.name(), &to, &shape)
    }

    fn is_view(&self) -> bool {
        true
    }

    fn sizes(&self) -> Dims {
        self.shape.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Operation> {
        as_many(sizes, &self.shape).map(|shape| ShrinkTo { shape }.into())
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|k| rule.g().stretched_to(rule.shape(k)).map(Some))
    }
}

impl Tensor {
    /// Stretched to `shape` by NumPy's rules, as a view whose repeated elements are the same.
    ///
    /// # Errors
    /// A shape to which this one does not stretch.
    #[track_caller]
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Tensor> {
        self.stretched_to(&Meta::known(self.dtype(), shape).shape)
    }

    /// [`Tensor::broadcast_to`] sizes that may be symbols.
    pub(crate) fn stretched_to(&self, shape: &[Dim]) -> Result<Tensor> {
        apply(BroadcastTo::new(shape), &[self])
    }

    /// The same for an operation that calls this tensor `arg`.
    pub(super) fn stretched_for(
        &self,
        op: &'static str,
        arg: &'static str,
        shape: &[Dim],
    ) -> Result<Tensor> {
        apply(BroadcastTo::of(op, arg, shape), &[self])
    }

    /// This tensor, which an operation calls `arg`, if it has `shape`.
    pub(crate) fn fitting(
        &self,
        op: &'static str,
        arg: &'static str,
        shape: &[Dim],
    ) -> Result<Tensor> {
        expect_shape(op, arg, &self.dims(), shape)?;
        if *self.dims() == *shape {
            return Ok(self.clone());
        }
        apply(Fit { shape: Dims::from_slice(shape), name: Name(op), arg: Name(arg) }, &[self])
    }

    /// The sum over the axes along which `shape` was stretched to this one.
    pub(crate) fn shrink_to(&self, shape: &[Dim]) -> Result<Tensor> {
        if *self.dims() == *shape {
            return Ok(self.clone());
        }
        apply(ShrinkTo { shape: Dims::from_slice(shape) }, &[self])
    }
}
