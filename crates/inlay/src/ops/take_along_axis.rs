//! `take_along_axis`: reads single elements at the positions of an index of the tensor's rank.

use std::borrow::Cow;

use inlay_core::{Dim, Error, Integer, Layout, Meta, Reduce, Result, ShapeText, axis_of, resized};
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{PutAlongAxis, Tensor, device};

declare! {
    /// Single elements at the positions of an index of x's rank: ``x[i][index[i][j]]`` for axis 1.
    ///
    /// With `broadcast`, the index broadcasts to x's shape on the axes other than `axis`, as in
    /// NumPy. Without it, the index may be smaller than x on those axes, as in ``torch.gather``.
    ///
    /// >>> import inlay
    /// >>> inlay.take_along_axis([[1, 2, 3], [4, 5, 6]], [[2, 0], [1, 1]], 1)
    /// array([[3, 1],
    ///        [5, 5]])
    TAKE_ALONG_AXIS = "take_along_axis"(
        x | arr: Tensor, index | indices: Index, axis: Int, broadcast: Flag = true
    )
        gradients [x]
        batch Axes
        => x.take_along_axis(index, axis, broadcast);
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct TakeAlongAxis {
    axis: i64,
    broadcast: bool,
}

/// Returns the shape of the elements that an index of `x`'s rank names.
///
/// With `broadcast`, sizes off the axis are those of `x`, and the index has these sizes or 1.
/// Without it, the index has its own sizes, none larger than those of `x` off the axis.
pub(super) fn index_shape(
    op: &'static str,
    x: &Meta,
    index: &Meta,
    axis: usize,
    broadcast: bool,
) -> Result<inlay_core::Dims> {
    index.expect_index(op, "index")?;
    let mut expected = x.dims();
    expected[axis] = index.shape.get(axis).copied().unwrap_or(expected[axis]);
    let fits = |(&got, &want): (&Dim, &Dim)| match (got, want) {
        (Dim::Known(1), _) if broadcast => true,
        (Dim::Known(got), Dim::Known(want)) if !broadcast => got <= want,
        _ => got.may_equal(want),
    };
    let agree = index.rank() == x.rank()
        && index.shape.iter().zip(&expected).enumerate().all(|(k, pair)| k == axis || fits(pair));
    if !agree {
        let (got, expected) = (ShapeText::of(&index.shape), ShapeText::of(&expected));
        return Err(Error::Shape { op, arg: "index", got, expected });
    }
    Ok(if broadcast { expected } else { index.dims() })
}

/// Returns the layout of an index that is broadcast to the shape of its entries.
pub(super) fn entries<'a>(index: &'a Array, shape: &[usize]) -> Cow<'a, Layout> {
    if index.shape() == shape {
        return Cow::Borrowed(&index.layout);
    }
    let layout = index.layout.broadcast_to(shape);
    Cow::Owned(layout.unwrap_or_else(|| unreachable!("`infer` has checked the shapes")))
}

impl Op for TakeAlongAxis {
    type Inputs = Inputs<2>;
    type Found = usize;

    fn operation(&self) -> &'static Operation {
        &TAKE_ALONG_AXIS
    }

    fn infer(&self, [x, index]: &[Meta; 2]) -> Result<Inferred<usize>> {
        x.expect_rank_at_least(self.name(), "x", 1)?;
        let axis = axis_of(self.name(), "axis", self.axis, x.rank())?;
        let shape = index_shape(self.name(), x, index, axis, self.broadcast)?;
        Inferred::new(x.with_shape(shape), axis)
    }

    fn run(
        &self,
        [x, index]: &[&Array; 2],
        inferred: &Inferred<usize>,
        _out: Out,
    ) -> Result<Array> {
        let op = self.name();
        let axis = inferred.found;
        let shape = if self.broadcast { x.shape() } else { index.shape() };
        let mut shape = resized(shape, axis, index.shape()[axis]);
        let layout = entries(index, &shape);
        let to = x.beside(op, x.dtype, &shape)?;
        // On the other axes, only the part of x that the index covers is read.
        shape[axis] = x.shape()[axis];
        let part = match x.shape() == shape.as_slice() {
            true => Cow::Borrowed(*x),
            false => {
                let part = Layout::over(&shape, x.layout.strides(), x.layout.offset());
                Cow::Owned(x.with_layout(part))
            }
        };
        device::gather_elements(&to, &part, axis, (op, "index", index, &layout))?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        Saves::inputs(&[1])
    }

    fn grad(&self, rule: &Rule<'_>, found: &usize) -> Result<Grads> {
        let how = PutAlongAxis::reduce(*found as i64, Reduce::Sum).broadcast(self.broadcast);
        rule.each(|k| rule.zeros(k)?.put_along_axis(&rule.input(1)?, rule.g(), how).map(Some))
    }
}

impl Tensor {
    /// Returns the elements `x[i][index[i][j][k]][k]`, for axis 1. Other axes work likewise.
    ///
    /// `index` has the rank of this tensor. With `broadcast` it broadcasts to this tensor's shape
    /// on the other axes, as in NumPy. Without it, it may be smaller there, as in `torch.gather`.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// let y = x.take_along_axis(&Tensor::from([[1i64], [0]]), 1, true)?;
    /// assert_eq!(y.to_vec::<i32>()?, [2, 3]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// An index whose shape does not fit or that is not of integers, an axis or an index out of
    /// range.
    #[track_caller]
    pub fn take_along_axis(
        &self,
        index: &Tensor,
        axis: impl Integer,
        broadcast: bool,
    ) -> Result<Tensor> {
        apply(TakeAlongAxis { axis: axis.to_i64(), broadcast }, &[self, index])
    }
}
