//! `broadcast_to`, its gradient, and a check of a shape: operations whose sizes may be symbols.

use std::borrow::Cow;

use inlay_core::{Dim, Dims, Fold, Meta, Result, expect_shape};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::broadcast::{expect_stretch, stretch};
use super::names::{ArgumentName, Caller};
use super::shape::{as_many, reshaped};
use crate::array::{Array, sizes};
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::sizes::sizes_of;
use crate::tape::{Grads, Rule};
use crate::{IntoShape, Tensor, device};

declare! {
    /// x broadcast to `shape` by NumPy's rules, as a view in which repeated elements share memory.
    ///
    /// In-place operations refuse such a view.
    ///
    /// >>> import inlay
    /// >>> inlay.broadcast_to([1, 2], [2, 2])
    /// array([[1, 2],
    ///        [1, 2]])
    BROADCAST_TO = "broadcast_to"(x: Tensor, shape: Sizes, name: Label = None)
        -> View
        gradients [x]
        => x.broadcast_to(&shape);

    SHRINK = "sum"(x: Tensor);

    BACKWARD = "backward"(output: Tensor, grad: Tensor);

    GRAD = "grad"(output: Tensor, grad: Tensor);
}

/// Broadcasts a tensor to a shape by NumPy's rules.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct BroadcastTo {
    shape: Dims,
    /// The operation that the user called, and the name of the tensor in it.
    name: Caller,
    arg: ArgumentName,
}

impl BroadcastTo {
    pub(super) fn new(shape: &[Dim]) -> Self {
        BroadcastTo::of(&BROADCAST_TO, "x", shape)
    }

    fn of(operation: &'static Operation, arg: &'static str, shape: &[Dim]) -> Self {
        BroadcastTo {
            shape: Dims::from_slice(shape),
            name: Caller(operation),
            arg: ArgumentName(arg),
        }
    }
}

impl Op for BroadcastTo {
    type Inputs = Inputs<1>;
    type Found = ();
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        self.name.0
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        let to = x.with_shape(self.shape.clone());
        expect_stretch(self.name(), self.arg.0, x, &to)?;
        Inferred::only(to)
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        stretch(self.name(), "x", x, &sizes(&self.shape)).map(Cow::into_owned)
    }

    fn sizes(&self) -> Dims {
        self.shape.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        as_many(sizes, &self.shape).map(|shape| BroadcastTo { shape, ..self.clone() })
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|k| rule.g().shrink_to(rule.shape(k)).map(Some))
    }
}

/// Checks the shape of a tensor, once its sizes are known, and returns the tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Fit {
    shape: Dims,
    name: Caller,
    arg: ArgumentName,
}

impl Op for Fit {
    type Inputs = Inputs<1>;
    type Found = ();
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        self.name.0
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        expect_shape(self.name(), self.arg.0, &x.shape, &self.shape)?;
        Inferred::only(x.clone())
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        Ok((*x).clone())
    }

    fn sizes(&self) -> Dims {
        self.shape.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        as_many(sizes, &self.shape).map(|shape| Fit { shape, ..self.clone() })
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|_| Ok(Some(rule.g().clone())))
    }
}

/// Sums over the axes along which a shape was broadcast: the gradient of [`BroadcastTo`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct ShrinkTo {
    shape: Dims,
}

impl Op for ShrinkTo {
    type Inputs = Inputs<1>;
    type Found = ();
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        &SHRINK
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        let to = x.with_shape(self.shape.clone());
        expect_stretch(self.name(), "shape", &to, x)?;
        Inferred::only(to)
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
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
        device::fold(&to, x, Fold::Sum, &over)?;
        reshaped(self.name(), &to, &shape)
    }

    fn sizes(&self) -> Dims {
        self.shape.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        as_many(sizes, &self.shape).map(|shape| ShrinkTo { shape })
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|k| rule.g().stretched_to(rule.shape(k)).map(Some))
    }
}

impl Tensor {
    /// Broadcasts to `shape` by NumPy's rules, as a view in which repeated elements share memory.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2]);
    /// assert_eq!(x.broadcast_to([2, 2])?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape to which this one does not broadcast.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Result<Tensor> {
        let shape = sizes_of(BROADCAST_TO.name, &shape.numbers())?;
        self.stretched_to(&Meta::known(self.dtype(), &shape).shape)
    }

    /// [`Tensor::broadcast_to`] for sizes that may be symbols.
    pub(crate) fn stretched_to(&self, shape: &[Dim]) -> Result<Tensor> {
        apply(BroadcastTo::new(shape), &[self])
    }

    /// Like [`Tensor::stretched_to`]. Errors name `operation` and call this tensor `arg`.
    pub(super) fn stretched_for(
        &self,
        operation: &'static Operation,
        arg: &'static str,
        shape: &[Dim],
    ) -> Result<Tensor> {
        apply(BroadcastTo::of(operation, arg, shape), &[self])
    }

    /// Returns this tensor if it has `shape`. Errors name `operation` and call this tensor `arg`.
    /// If sizes are unknown, the check is recorded as [`Fit`].
    pub(crate) fn fitting(
        &self,
        operation: &'static Operation,
        arg: &'static str,
        shape: &[Dim],
    ) -> Result<Tensor> {
        expect_shape(operation.name, arg, &self.dims(), shape)?;
        if *self.dims() == *shape {
            return Ok(self.clone());
        }
        let (name, arg) = (Caller(operation), ArgumentName(arg));
        apply(Fit { shape: Dims::from_slice(shape), name, arg }, &[self])
    }

    /// Sums over the axes along which `shape` was broadcast to the shape of this tensor.
    pub(crate) fn shrink_to(&self, shape: &[Dim]) -> Result<Tensor> {
        if *self.dims() == *shape {
            return Ok(self.clone());
        }
        apply(ShrinkTo { shape: Dims::from_slice(shape) }, &[self])
    }
}
