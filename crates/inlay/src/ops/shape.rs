//! `reshape`, `transpose`, `broadcast_to`: the same elements in another shape.

use std::borrow::Cow;

use inlay_core::{Dim, Dims, Error, Fold, Meta, Result, ShapeText, axis_of, expect_shape};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::broadcast::{expect_stretch, sizes, stretch};
use super::operation::{Name, Operation};
use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

/// The same elements in row-major order under another shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Reshape {
    shape: Dims,
    /// The position whose size is what is left.
    open: Option<usize>,
}

impl Reshape {
    /// To sizes as users write them, in which one may be -1.
    fn new(shape: &[i64]) -> Result<Self> {
        let bad = |expected: &str| {
            let (op, arg, got) = ("reshape", "shape", format!("{shape:?}"));
            Error::Argument { op, arg, got, expected: expected.into() }
        };
        if shape.iter().any(|&size| size < -1) {
            return Err(bad("sizes, and at most one -1"));
        }
        if shape.iter().filter(|&&size| size == -1).count() > 1 {
            return Err(bad("at most one -1"));
        }
        let open = shape.iter().position(|&size| size == -1);
        Ok(Reshape {
            shape: shape.iter().map(|&size| Dim::Known(size.max(0) as usize)).collect(),
            open,
        })
    }
}

impl Op for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        let rest = self.shape.iter().enumerate().filter(|(k, _)| Some(*k) != self.open);
        let mut rest = rest.map(|(_, dim)| dim.known());
        let rest = rest.try_fold(1usize, |n, size| Some(n.saturating_mul(size?)));
        let mut shape = self.shape.clone();
        let open = self.open.filter(|open| *open < shape.len());
        if let Some(open) = open {
            shape[open] = Dim::unknown();
        }
        let (Some(have), Some(rest)) = (x.numel(), rest) else { return Ok(x.with_shape(shape)) };
        match open {
            Some(open) if rest > 0 && have.is_multiple_of(rest) => {
                shape[open] = Dim::Known(have / rest);
            }
            None if rest == have => {}
            _ => {
                let size = |dim: &Dim| dim.known().map_or(-1, |size| size as i64);
                let mut to: Vec<i64> = self.shape.iter().map(size).collect();
                if let Some(open) = open {
                    to[open] = -1;
                }
                let (op, from) = (self.name(), ShapeText::of(&x.shape));
                return Err(Error::Reshape { op, from, have, to });
            }
        }
        Ok(x.with_shape(shape))
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        reshaped(self.name(), x, &sizes(&self.infer(&[x.meta()])?.shape))
    }

    fn is_view(&self) -> bool {
        true
    }

    fn sizes(&self) -> Dims {
        self.shape.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Operation> {
        let shape = Dims::from_slice(sizes);
        (shape.len() == self.shape.len()).then(|| Reshape { shape, open: self.open }.into())
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|k| rule.g().shaped(rule.shape(k)).map(Some))
    }
}

/// `x` under another shape of as many elements: a view where strides can say it, else a copy.
fn reshaped(op: &'static str, x: &Array, shape: &[usize]) -> Result<Array> {
    if let Some(layout) = x.layout.reshape(shape) {
        return Ok(x.with_layout(layout));
    }
    let copy = device::to_contiguous(op, x)?;
    let layout = copy.layout.reshape(shape);
    let layout = layout.unwrap_or_else(|| unreachable!("contiguous elements take any shape"));
    Ok(copy.with_layout(layout))
}

/// Some neighbouring axes made one; none of them become a new axis of size 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Merge {
    first: usize,
    count: usize,
}

impl Op for Merge {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        let op = self.name();
        let Some(end) = self.first.checked_add(self.count).filter(|end| *end <= x.rank()) else {
            return Err(Error::Axis { op, arg: "axis", axis: self.first as i64, rank: x.rank() });
        };
        let merged = &x.shape[self.first..end];
        let merged = match merged {
            [one] => *one,
            _ => {
                let known: Option<SmallVec<[usize; 6]>> =
                    merged.iter().map(|dim| dim.known()).collect();
                match known {
                    None => Dim::unknown(),
                    Some(sizes) => {
                        let size = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
                        let size = size.filter(|&size| isize::try_from(size).is_ok());
                        // Axes without elements may stand beside ones too long to count.
                        let size = if sizes.contains(&0) { Some(0) } else { size };
                        let shape = || x.shape.iter().map(|dim| dim.known().unwrap_or(0)).collect();
                        Dim::Known(size.ok_or_else(|| Error::TooLarge { op, shape: shape() })?)
                    }
                }
            }
        };
        let (before, after) = (&x.shape[..self.first], &x.shape[end..]);
        Ok(x.with_shape(before.iter().chain([&merged]).chain(after).copied().collect()))
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        reshaped(self.name(), x, &sizes(&self.infer(&[x.meta()])?.shape))
    }

    fn is_view(&self) -> bool {
        true
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|k| rule.g().shaped(rule.shape(k)).map(Some))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Transpose {
    perm: Vec<i64>,
}

impl Transpose {
    fn axes(&self, rank: usize) -> Result<Vec<usize>> {
        let op = self.name();
        let axes = self.perm.iter().map(|&axis| axis_of(op, "perm", axis, rank));
        let axes = axes.collect::<Result<Vec<usize>>>()?;
        if axes.len() != rank || (0..rank).any(|axis| !axes.contains(&axis)) {
            let got = format!("{:?}", self.perm);
            let expected = format!("each of the {rank} axes once");
            return Err(Error::Argument { op, arg: "perm", got, expected });
        }
        Ok(axes)
    }
}

impl Op for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        let axes = self.axes(x.rank())?;
        Ok(x.with_shape(axes.into_iter().map(|axis| x.shape[axis]).collect()))
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        Ok(x.with_layout(x.layout.transpose(&self.axes(x.shape().len())?)))
    }

    fn is_view(&self) -> bool {
        true
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let axes = self.axes(rule.g().rank())?;
        let mut back = vec![0; axes.len()];
        for (to, &from) in axes.iter().enumerate() {
            back[from] = to as i64;
        }
        rule.each(|_| rule.g().transpose(&back).map(Some))
    }
}

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
        let shape = Dims::from_slice(sizes);
        (shape.len() == self.shape.len()).then(|| BroadcastTo { shape, ..self.clone() }.into())
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
        let shape = Dims::from_slice(sizes);
        (shape.len() == self.shape.len()).then(|| Fit { shape, ..self.clone() }.into())
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
        let to = Array::new(self.name(), x.dtype, &kept)?;
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
        let shape = Dims::from_slice(sizes);
        (shape.len() == self.shape.len()).then(|| ShrinkTo { shape }.into())
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|k| rule.g().stretched_to(rule.shape(k)).map(Some))
    }
}

impl Tensor {
    /// The same elements in row-major order under another shape, in which one size may be -1: as a
    /// view where strides can say it, else a copy.
    ///
    /// # Errors
    /// A shape of another number of elements, or with sizes that are none.
    #[track_caller]
    pub fn reshape(&self, shape: &[i64]) -> Result<Tensor> {
        apply(Reshape::new(shape)?, &[self])
    }

    /// [`Tensor::reshape`] to sizes that may be symbols.
    pub(crate) fn shaped(&self, shape: &[Dim]) -> Result<Tensor> {
        apply(Reshape { shape: Dims::from_slice(shape), open: None }, &[self])
    }

    /// `count` axes from `first` on made one.
    pub(crate) fn merged(&self, first: usize, count: usize) -> Result<Tensor> {
        apply(Merge { first, count }, &[self])
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

    /// The axes in another order, as a view.
    ///
    /// # Errors
    /// A `perm` that does not name each axis once.
    #[track_caller]
    pub fn transpose(&self, perm: &[i64]) -> Result<Tensor> {
        apply(Transpose { perm: perm.to_vec() }, &[self])
    }

    /// Stretched to `shape` by NumPy's rules, as a view whose repeated elements are the same.
    ///
    /// # Errors
    /// A shape to which this one does not stretch.
    #[track_caller]
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Tensor> {
        self.stretched_to(&Meta::known(self.dtype(), shape).shape)
    }
}
