//! `reshape`, `transpose`, `broadcast_to`: the same elements in another shape.

use std::borrow::Cow;

use inlay_core::{Dim, Dims, Error, Meta, Result, ShapeText, axis_of, broadcast_dims};

use super::broadcast::stretch;
use crate::array::Array;
use crate::autograd::{Grads, Rule};
use crate::funnel::{Op, Out, apply};
use crate::{Tensor, device};

#[derive(Debug)]
struct Reshape {
    shape: Vec<i64>,
}

impl Op for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        let op = self.name();
        let bad = |expected: &str| Error::Argument {
            op,
            arg: "shape",
            got: format!("{:?}", self.shape),
            expected: expected.into(),
        };
        if self.shape.iter().any(|&size| size < -1) {
            return Err(bad("sizes, and at most one -1"));
        }
        if self.shape.iter().filter(|&&size| size == -1).count() > 1 {
            return Err(bad("at most one -1"));
        }
        let have = x.numel();
        let rest = self.shape.iter().filter(|&&size| size != -1);
        let rest = rest.fold(1usize, |n, &size| n.saturating_mul(size as usize));
        let wrong = |have| Error::Reshape {
            op,
            from: ShapeText::of(&x.shape),
            have,
            to: self.shape.clone(),
        };
        let fitting = |have: usize| match self.shape.contains(&-1) {
            true if rest > 0 && have.is_multiple_of(rest) => Ok(have / rest),
            false if rest == have => Ok(0),
            _ => Err(wrong(have)),
        };
        let open = have.map(fitting).transpose()?.map_or_else(Dim::unknown, Dim::Known);
        let dim = |&size: &i64| if size == -1 { open } else { Dim::Known(size as usize) };
        Ok(x.with_shape(self.shape.iter().map(dim).collect()))
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        let [x] = inputs else { unreachable!("one input") };
        let shape = super::broadcast::sizes(&self.infer(&[x.meta()])?);
        if let Some(layout) = x.layout.reshape(&shape) {
            return Ok(x.with_layout(layout));
        }
        let copy = device::to_contiguous(self.name(), x)?;
        let layout = copy.layout.reshape(&shape);
        let layout = layout.unwrap_or_else(|| unreachable!("contiguous elements take any shape"));
        Ok(copy.with_layout(layout))
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|k| rule.g().shaped(&rule.shape(k)).map(Some))
    }
}

#[derive(Debug)]
struct Transpose {
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

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        let axes = self.axes(rule.g().rank())?;
        let mut back = vec![0; axes.len()];
        for (to, &from) in axes.iter().enumerate() {
            back[from] = to as i64;
        }
        rule.each(|_| rule.g().transpose(&back).map(Some))
    }
}

#[derive(Debug)]
struct BroadcastTo {
    shape: Vec<usize>,
}

impl Op for BroadcastTo {
    fn name(&self) -> &'static str {
        "broadcast_to"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [x] = inputs else { unreachable!("one input") };
        let to: Dims = self.shape.iter().map(|&size| Dim::Known(size)).collect();
        match broadcast_dims(&[&x.shape, &to]) {
            Some(shape) if shape == to => Ok(x.with_shape(to)),
            _ => {
                let (got, to) = (ShapeText::of(&x.shape), ShapeText::of(&to));
                Err(Error::Broadcast { op: self.name(), arg: "x", got, to })
            }
        }
    }

    fn run(&self, inputs: &[&Array], _out: Out) -> Result<Array> {
        stretch(self.name(), "x", inputs[0], &self.shape).map(Cow::into_owned)
    }

    fn grad(&self, rule: &Rule<'_>) -> Result<Grads> {
        rule.each(|k| rule.g().shrink_to(&rule.shape(k)).map(Some))
    }
}

impl Tensor {
    /// The same elements in row-major order under another shape, in which one size may be -1: as a
    /// view where strides can say it, else a copy.
    ///
    /// # Errors
    /// A shape of another number of elements, or with sizes that are none.
    pub fn reshape(&self, shape: &[i64]) -> Result<Tensor> {
        apply(Reshape { shape: shape.to_vec() }, &[self])
    }

    /// [`Tensor::reshape`] to sizes that are all known.
    pub(crate) fn shaped(&self, shape: &[usize]) -> Result<Tensor> {
        apply(Reshape { shape: shape.iter().map(|&size| size as i64).collect() }, &[self])
    }

    /// The axes in another order, as a view.
    ///
    /// # Errors
    /// A `perm` that does not name each axis once.
    pub fn transpose(&self, perm: &[i64]) -> Result<Tensor> {
        apply(Transpose { perm: perm.to_vec() }, &[self])
    }

    /// Stretched to `shape` by NumPy's rules, as a view whose repeated elements are the same.
    ///
    /// # Errors
    /// A shape to which this one does not stretch.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Tensor> {
        apply(BroadcastTo { shape: shape.to_vec() }, &[self])
    }
}
