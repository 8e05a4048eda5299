//! `squeeze` and `unsqueeze`: remove and insert axes of size 1, as views.

use inlay_core::{Dim, Error, Meta, Result, axis_of};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule};
use crate::{IntoAxes, Tensor};

declare! {
    /// x without axes of size 1, as a view.
    ///
    /// `axis` is an axis, a list of axes, or None for all axes of size 1. As in NumPy, an axis of
    /// another size is an error.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.squeeze(np.zeros((1, 3, 1))).shape
    /// (3,)
    /// >>> inlay.squeeze(np.zeros((1, 3, 1)), 0).shape
    /// (3, 1)
    SQUEEZE = "squeeze"(x: Tensor, axis: Axes = None, name: Label = None)
        -> View
        gradients [x]
        batch Axes
        => x.squeeze(axis);

    /// x with new axes of size 1, as a view.
    ///
    /// `axis` is the place of a new axis in the result, or a list of places.
    ///
    /// >>> import inlay, numpy as np
    /// >>> inlay.unsqueeze(np.zeros(3), -1).shape
    /// (3, 1)
    /// >>> inlay.unsqueeze(np.zeros(3), [0, 2]).shape
    /// (1, 3, 1)
    UNSQUEEZE = "unsqueeze"(x: Tensor, axis: Ints, name: Label = None)
        -> View
        gradients [x]
        batch Axes
        => x.unsqueeze(axis);
}

/// Removes axes of size 1, or inserts them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Squeeze {
    axes: Vec<i64>,
    /// Whether the axes are inserted. Then they count in the result.
    inserts: bool,
}

/// Axes counted from the front, in order.
type Sorted = SmallVec<[usize; 6]>;

impl Squeeze {
    fn sorted(&self, rank: usize) -> Result<Sorted> {
        let op = self.name();
        let axes = self.axes.iter().map(|&axis| axis_of(op, "axis", axis, rank));
        let mut axes = axes.collect::<Result<Sorted>>()?;
        axes.sort_unstable();
        if axes.windows(2).any(|pair| pair[0] == pair[1]) {
            let (got, expected) = (format!("{:?}", self.axes), "each axis once".into());
            return Err(Error::Argument { op, arg: "axis", got, expected });
        }
        Ok(axes)
    }
}

impl Op for Squeeze {
    type Inputs = Inputs<1>;
    type Found = Sorted;
    const IS_VIEW: bool = true;

    fn operation(&self) -> &'static Operation {
        if self.inserts { &UNSQUEEZE } else { &SQUEEZE }
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<Sorted>> {
        let mut shape = x.dims();
        if self.inserts {
            let axes = self.sorted(x.rank() + self.axes.len())?;
            axes.iter().for_each(|&axis| shape.insert(axis, Dim::Known(1)));
            return Inferred::new(x.with_shape(shape), axes);
        }
        let axes = self.sorted(x.rank())?;
        for &axis in axes.iter().rev() {
            if let Dim::Known(size @ (0 | 2..)) = shape.remove(axis) {
                let (op, got) = (self.name(), axis.to_string());
                let expected = format!("an axis of size 1, that one has size {size}");
                return Err(Error::Argument { op, arg: "axis", got, expected });
            }
        }
        Inferred::new(x.with_shape(shape), axes)
    }

    fn run(&self, [x]: &[&Array; 1], inferred: &Inferred<Sorted>, _out: Out) -> Result<Array> {
        let axes = inferred.found.iter();
        let layout = x.layout.clone();
        Ok(x.with_layout(match self.inserts {
            true => axes.fold(layout, |layout, &axis| layout.insert_axis(axis)),
            false => axes.rev().fold(layout, |layout, &axis| layout.without_axis(axis)),
        }))
    }

    fn grad(&self, rule: &Rule<'_>, _: &Sorted) -> Result<Grads> {
        rule.each(|k| rule.g().shaped(rule.shape(k)).map(Some))
    }
}

impl Tensor {
    /// Returns the tensor without `axes`, which have size 1, as a view. `None` means all axes of
    /// size 1.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 2, 3], &[1, 3, 1])?;
    /// assert_eq!(x.squeeze(None)?.shape(), [3]);
    /// assert_eq!(x.squeeze(0)?.shape(), [3, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that is out of range, named twice, or of another size than 1; for `None`, a size
    /// that is not known yet.
    #[track_caller]
    pub fn squeeze(&self, axes: impl IntoAxes) -> Result<Tensor> {
        let axes = match axes.axes() {
            Some(axes) => axes,
            None => {
                let dims = self.dims();
                if let Some(axis) = dims.iter().position(|dim| dim.known().is_none()) {
                    return Err(Error::OpenSize { op: SQUEEZE.name, arg: "x", axis });
                }
                let ones = dims.iter().enumerate().filter(|(_, dim)| **dim == Dim::Known(1));
                ones.map(|(axis, _)| axis as i64).collect()
            }
        };
        apply(Squeeze { axes, inserts: false }, &[self])
    }

    /// Returns the tensor with new axes of size 1, as a view. The axes count in the result.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 2, 3], &[3])?;
    /// assert_eq!(x.unsqueeze([0, -1])?.shape(), [1, 3, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that is out of range or named twice.
    #[track_caller]
    pub fn unsqueeze(&self, axes: impl IntoAxes) -> Result<Tensor> {
        let axes = axes.axes().unwrap_or_default();
        apply(Squeeze { axes, inserts: true }, &[self])
    }
}
