//! `reshape`, `flatten`, `transpose`: the same elements in another shape.

use inlay_core::{Dim, Dims, Error, Meta, Result, ShapeText, axis_of};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::array::{Array, sizes};
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule};
use crate::{IntoAxes, IntoShape, Tensor, device};

declare! {
    /// The same elements in row-major order under another shape, in which one size may be -1.
    ///
    /// The result is a view if strides can express it, otherwise a copy.
    ///
    /// >>> import inlay
    /// >>> inlay.reshape([1, 2, 3, 4], [2, -1])
    /// array([[1, 2],
    ///        [3, 4]])
    RESHAPE = "reshape"(x: Tensor, shape: Ints, name: Label = None)
        -> ViewOrCopy
        gradients [x]
        => x.reshape(shape);

    /// The axes in the order of `perm`, as a view. Without `perm`, their order is reversed.
    ///
    /// >>> import inlay
    /// >>> inlay.transpose([[1, 2, 3]], [1, 0]).shape
    /// (3, 1)
    TRANSPOSE = "transpose"(x: Tensor, perm | axes | dims: Axes = None, name: Label = None)
        -> View
        gradients [x]
        => match perm {
            Some(perm) => x.transpose(perm),
            None => x.transpose(&(0..x.rank() as i64).rev().collect::<Vec<_>>()),
        };

    /// The axes from `start_axis` to `stop_axis`, both included, merged into one.
    ///
    /// The result is a view if strides can express it, otherwise a copy. A 0-D tensor becomes 1-D.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.flatten(np.zeros((2, 3, 4))).shape
    /// (24,)
    /// >>> inlay.flatten(np.zeros((2, 3, 4)), 1).shape
    /// (2, 12)
    FLATTEN = "flatten"(
        x: Tensor, start_axis | start_dim: Int = 0, stop_axis | end_dim: Int = (-1),
        name: Label = None
    )
        -> ViewOrCopy
        gradients [x]
        batch Axes
        => x.flatten(start_axis, stop_axis);
}

/// The same elements in row-major order under another shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Reshape {
    shape: Dims,
    /// The position of the size -1, which is inferred.
    open: Option<usize>,
}

impl Reshape {
    /// Takes sizes as users write them, of which one may be -1.
    fn new(shape: &[i128]) -> Result<Self> {
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
            shape: shape
                .iter()
                .map(|&size| Dim::Known(usize::try_from(size.max(0)).unwrap_or(usize::MAX)))
                .collect(),
            open,
        })
    }
}

impl Op for Reshape {
    type Inputs = Inputs<1>;
    type Found = ();
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        &RESHAPE
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        let rest = self.shape.iter().enumerate().filter(|(k, _)| Some(*k) != self.open);
        let mut rest = rest.map(|(_, dim)| dim.known());
        let rest = rest.try_fold(1usize, |n, size| Some(n.saturating_mul(size?)));
        let mut shape = self.shape.clone();
        let open = self.open.filter(|open| *open < shape.len());
        if let Some(open) = open {
            shape[open] = Dim::unknown();
        }
        let (Some(have), Some(rest)) = (x.numel(), rest) else {
            return Inferred::only(x.with_shape(shape));
        };
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
        Inferred::only(x.with_shape(shape))
    }

    fn run(&self, [x]: &[&Array; 1], inferred: &Inferred<()>, _out: Out) -> Result<Array> {
        reshaped(self.name(), x, &sizes(&inferred.meta.shape))
    }

    fn sizes(&self) -> Dims {
        self.shape.clone()
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        as_many(sizes, &self.shape).map(|shape| Reshape { shape, open: self.open })
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|k| rule.g().shaped(rule.shape(k)).map(Some))
    }
}

/// Returns `sizes` if they are as many as `old`, which they replace.
pub(super) fn as_many(sizes: &[Dim], old: &[Dim]) -> Option<Dims> {
    (sizes.len() == old.len()).then(|| Dims::from_slice(sizes))
}

/// Returns `x` in another shape with the same number of elements: a view if strides can express it,
/// otherwise a copy.
pub(super) fn reshaped(op: &'static str, x: &Array, shape: &[usize]) -> Result<Array> {
    if let Some(layout) = x.layout.reshape(shape) {
        return Ok(x.with_layout(layout));
    }
    let copy = device::to_contiguous(op, x)?;
    let layout = copy.layout.reshape(shape);
    let layout = layout.unwrap_or_else(|| unreachable!("contiguous elements can take any shape"));
    Ok(copy.with_layout(layout))
}

/// Merges neighbouring axes into one. A count of 0 inserts a new axis of size 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Merge {
    first: usize,
    count: usize,
}

impl Op for Merge {
    type Inputs = Inputs<1>;
    type Found = ();
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        &RESHAPE
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
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
                        // An axis of size 0 makes the product 0, even if the other sizes overflow.
                        let size = if sizes.contains(&0) { Some(0) } else { size };
                        let shape = || x.shape.iter().map(|dim| dim.known().unwrap_or(0)).collect();
                        Dim::Known(size.ok_or_else(|| Error::TooLarge { op, shape: shape() })?)
                    }
                }
            }
        };
        let (before, after) = (&x.shape[..self.first], &x.shape[end..]);
        let shape = before.iter().chain([&merged]).chain(after).copied().collect();
        Inferred::only(x.with_shape(shape))
    }

    fn run(&self, [x]: &[&Array; 1], inferred: &Inferred<()>, _out: Out) -> Result<Array> {
        reshaped(self.name(), x, &sizes(&inferred.meta.shape))
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|k| rule.g().shaped(rule.shape(k)).map(Some))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Transpose {
    perm: Vec<i64>,
}

impl Transpose {
    fn axes(&self, rank: usize) -> Result<SmallVec<[usize; 6]>> {
        let op = self.name();
        let axes = self.perm.iter().map(|&axis| axis_of(op, "perm", axis, rank));
        let axes = axes.collect::<Result<SmallVec<[usize; 6]>>>()?;
        if axes.len() != rank || (0..rank).any(|axis| !axes.contains(&axis)) {
            let got = format!("{:?}", self.perm);
            let expected = format!("each of the {rank} axes once");
            return Err(Error::Argument { op, arg: "perm", got, expected });
        }
        Ok(axes)
    }
}

impl Op for Transpose {
    type Inputs = Inputs<1>;
    type Found = SmallVec<[usize; 6]>;
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        &TRANSPOSE
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<SmallVec<[usize; 6]>>> {
        let axes = self.axes(x.rank())?;
        let shape = axes.iter().map(|&axis| x.shape[axis]).collect();
        Inferred::new(x.with_shape(shape), axes)
    }

    fn run(
        &self,
        [x]: &[&Array; 1],
        inferred: &Inferred<SmallVec<[usize; 6]>>,
        _out: Out,
    ) -> Result<Array> {
        Ok(x.with_layout(x.layout.transpose(&inferred.found)))
    }

    fn grad(&self, rule: &Rule<'_>, axes: &SmallVec<[usize; 6]>) -> Result<Grads> {
        let mut back = vec![0; axes.len()];
        for (to, &from) in axes.iter().enumerate() {
            back[from] = to as i64;
        }
        rule.each(|_| rule.g().transpose(&back).map(Some))
    }
}

impl Tensor {
    /// Returns the same elements in row-major order in another shape, of which one size may be -1:
    /// a view if strides can express it, otherwise a copy.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1, 2, 3, 4, 5, 6]);
    /// assert_eq!(x.reshape([2, -1])?.shape(), [2, 3]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape with another number of elements or with invalid sizes.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoShape) -> Result<Tensor> {
        apply(Reshape::new(&shape.numbers())?, &[self])
    }

    /// Merges the axes from `start` to `stop`, both included, into one: a view if strides can
    /// express it, otherwise a copy. A 0-D tensor becomes 1-D.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 2, 3, 4], &[1, 2, 2])?;
    /// assert_eq!(x.flatten(1, -1)?.shape(), [1, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis out of range, a start after the stop.
    #[track_caller]
    pub fn flatten(&self, start: i64, stop: i64) -> Result<Tensor> {
        let (op, rank) = (FLATTEN.name, self.rank().max(1));
        let first = axis_of(op, "start_axis", start, rank)?;
        let last = axis_of(op, "stop_axis", stop, rank)?;
        if first > last {
            let (got, expected) = (start.to_string(), format!("an axis up to stop_axis, {stop}"));
            return Err(Error::Argument { op, arg: "start_axis", got, expected });
        }
        apply(Merge { first, count: (last + 1 - first).min(self.rank()) }, &[self])
    }

    /// [`Tensor::reshape`] for sizes that may be symbols.
    pub(crate) fn shaped(&self, shape: &[Dim]) -> Result<Tensor> {
        if *self.dims() == *shape {
            return Ok(self.clone());
        }
        apply(Reshape { shape: Dims::from_slice(shape), open: None }, &[self])
    }

    /// Merges `count` axes from `first` on into one. A count of 0 inserts a new axis of size 1.
    pub(crate) fn merged(&self, first: usize, count: usize) -> Result<Tensor> {
        apply(Merge { first, count }, &[self])
    }

    /// Returns the axes in another order, as a view. `None` reverses them.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.transpose([1, 0])?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A `perm` that does not name each axis once.
    #[track_caller]
    pub fn transpose(&self, perm: impl IntoAxes) -> Result<Tensor> {
        let perm = perm.axes();
        let perm = perm.unwrap_or_else(|| (0..self.rank() as i64).rev().collect());
        apply(Transpose { perm }, &[self])
    }
}
