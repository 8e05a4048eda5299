//! `put_along_axis`: writes single elements to the positions of an index of the tensor's rank.

use std::borrow::Cow;

use inlay_core::{
    Combine, DType, Dim, Dims, Error, Integer, Layout, Meta, Reduce, Result, ShapeText, axis_of,
    resized,
};
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::broadcast::{expect_stretch, stretch};
use super::flat::checked_index;
use super::scatter::expect_defined;
use super::scatter_grad::{Along, Made, Scattered, reads};
use super::take_along_axis::{entries, index_shape};
use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::{apply, apply_in_place};
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Tensor, device};

declare! {
    /// Write single elements to the positions of an index of x's rank.
    ///
    /// For axis 1 and for j in order: ``x[i][index[i][j][k]][k] (op)= values[i][j][k]``.
    ///
    /// Args:
    ///     x: the tensor to start from.
    ///     index: integers, of x's rank.
    ///     values: of x's dtype.
    ///     axis: the axis along which the index counts.
    ///     reduce: 'assign', or as in ``scatter``: 'add', 'mul', 'mean', 'amax', 'amin'.
    ///     include_self: whether the old value of a place takes part in its reduction.
    ///     broadcast: True broadcasts index and values to x's shape on the axes other than `axis`,
    ///         as in Paddle and NumPy. With False they may be smaller than x on those axes, and
    ///         values larger than the index, as in torch's ``scatter_reduce``.
    ///
    /// >>> import inlay
    /// >>> inlay.put_along_axis([[0, 0, 0], [0, 0, 0]], [[2], [0]], 7, 1)
    /// array([[0, 0, 7],
    ///        [7, 0, 0]])
    PUT_ALONG_AXIS = "put_along_axis"(
        x | arr: Tensor, index | indices: Index, values | src: Like, axis: Int, reduce: ReduceOrAssign = assign,
        include_self: Flag = true, broadcast: Flag = true
    )
        gradients [x, values]
        batch Axes
        twin out => {
            let how = match reduce {
                Some(reduce) => PutAlongAxis::reduce(axis, reduce),
                None => PutAlongAxis::assign(axis),
            };
            let how = how.include_self(include_self).broadcast(broadcast);
            out.apply(how, &[x, index, values])
        };
}

/// How [`Tensor::put_along_axis`] writes.
///
/// ```
/// use inlay::{PutAlongAxis, Reduce};
///
/// let assign = PutAlongAxis::assign(0);
/// let sum = PutAlongAxis::reduce(-1, Reduce::Sum).include_self(true).broadcast(false);
/// # drop((assign, sum));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct PutAlongAxis {
    axis: i64,
    combine: Combine,
    broadcast: bool,
}

impl PutAlongAxis {
    /// Assigns along `axis`. The last value of a place wins.
    ///
    /// ```
    /// # use inlay::{PutAlongAxis, Tensor};
    /// let x = Tensor::from([0, 0, 0]);
    /// let (index, values) = (Tensor::from([2i64, 2]), Tensor::from([5, 6]));
    /// let y = x.put_along_axis(&index, &values, PutAlongAxis::assign(0))?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 0, 6]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn assign(axis: impl Integer) -> Self {
        PutAlongAxis { axis: axis.to_i64(), combine: Combine::Assign, broadcast: true }
    }

    /// Sets each place that the index names along `axis` to the reduction of its values.
    ///
    /// ```
    /// # use inlay::{PutAlongAxis, Reduce, Tensor};
    /// let (x, index, values) = (Tensor::from([1, 1]), Tensor::from([0i64, 0]), Tensor::from([5, 6]));
    /// let y = x.put_along_axis(&index, &values, PutAlongAxis::reduce(0, Reduce::Sum))?;
    /// assert_eq!(y.to_vec::<i32>()?, [11, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn reduce(axis: impl Integer, reduce: Reduce) -> Self {
        let combine = Combine::Reduce { reduce, include_self: false };
        PutAlongAxis { combine, ..PutAlongAxis::assign(axis) }
    }

    /// Sets whether the old value of a place takes part in its reduction. By default it does not,
    /// as in [`Scatter`](crate::Scatter). (In Python the default of `put_along_axis` is True.) An
    /// assignment ignores this.
    ///
    /// ```
    /// # use inlay::{PutAlongAxis, Reduce, Tensor};
    /// let (x, index, values) = (Tensor::from([1, 1]), Tensor::from([0i64, 0]), Tensor::from([5, 6]));
    /// let how = PutAlongAxis::reduce(0, Reduce::Sum).include_self(true);
    /// assert_eq!(x.put_along_axis(&index, &values, how)?.to_vec::<i32>()?, [12, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    #[must_use]
    pub fn include_self(mut self, include: bool) -> Self {
        if let Combine::Reduce { include_self, .. } = &mut self.combine {
            *include_self = include;
        }
        self
    }

    /// Sets whether index and values broadcast to the tensor's shape on the other axes. By default
    /// they do. Otherwise they may be smaller than the tensor there, and values larger than the
    /// index.
    ///
    /// ```
    /// # use inlay::{PutAlongAxis, Tensor};
    /// let x = Tensor::from([[1, 1], [1, 1]]);
    /// let (index, values) = (Tensor::from([[0i64]]), Tensor::from([[5]]));
    /// let how = PutAlongAxis::assign(1);
    /// assert_eq!(x.put_along_axis(&index, &values, how)?.to_vec::<i32>()?, [5, 1, 5, 1]);
    /// let how = how.broadcast(false);
    /// assert_eq!(x.put_along_axis(&index, &values, how)?.to_vec::<i32>()?, [5, 1, 1, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    #[must_use]
    pub fn broadcast(mut self, broadcast: bool) -> Self {
        self.broadcast = broadcast;
        self
    }
}

impl Op for PutAlongAxis {
    type Inputs = Inputs<3>;
    type Found = usize;
    const WRITES: bool = true;

    fn operation(&self) -> &'static Operation {
        &PUT_ALONG_AXIS
    }

    fn infer(&self, [x, index, values]: &[Meta; 3]) -> Result<Inferred<usize>> {
        let op = self.name();
        x.expect_rank_at_least(op, "x", 1)?;
        let axis = axis_of(op, "axis", self.axis, x.rank())?;
        let entries = x.with_shape(index_shape(op, x, index, axis, self.broadcast)?);
        values.expect_dtype_of(op, "values", x, "x")?;
        expect_defined(op, self.combine, x)?;
        if self.broadcast {
            expect_stretch(op, "values", values, &entries)?;
        } else {
            let covers = |(&have, &need): (&Dim, &Dim)| match (have, need) {
                (Dim::Known(have), Dim::Known(need)) => have >= need,
                _ => true,
            };
            let same_rank = values.rank() == entries.rank();
            if !same_rank || !values.shape.iter().zip(&entries.shape).all(covers) {
                let (got, expected) = (ShapeText::of(&values.shape), ShapeText::of(&entries.shape));
                return Err(Error::Shape { op, arg: "values", got, expected });
            }
        }
        Inferred::new(x.clone(), axis)
    }

    fn run(
        &self,
        [x, index, values]: &[&Array; 3],
        inferred: &Inferred<usize>,
        out: Out,
    ) -> Result<Array> {
        let op = self.name();
        let axis = inferred.found;
        let shape = if self.broadcast { x.shape() } else { index.shape() };
        let shape = resized(shape, axis, index.shape()[axis]);
        let layout = entries(index, &shape);
        let values = if self.broadcast {
            stretch(op, "values", values, &shape)?
        } else {
            let part = &values.layout;
            let part = Layout::over(&shape, part.strides(), part.offset());
            Cow::Owned(values.with_layout(part))
        };
        let (to, base) = out.of(op, x)?;
        let index = (op, "index", *index, &*layout);
        device::scatter_elements(&to, base, axis, index, &values, self.combine)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        let (x, values, y) = reads(self.combine);
        let inputs = u32::from(x) | 1 << 1 | u32::from(values) << 2;
        Saves { inputs, output: y }
    }

    /// Uses the rules of a scatter, with elements instead of rows. For a product everything is
    /// flattened to 1-D, so each element is a row.
    fn grad(&self, rule: &Rule<'_>, found: &usize) -> Result<Grads> {
        let shape = rule.shape(0);
        let axis = *found;
        let index = rule.input(1)?;
        let mut entries = if self.broadcast { Dims::from_slice(shape) } else { index.dims() };
        entries[axis] = index.dims()[axis];
        let corner = Block::first(&entries);
        let stretch = |values: Tensor| match self.broadcast {
            true => values.stretched_to(&entries),
            false => values.block(&corner),
        };
        let (read_x, read_values, read_y) = reads(self.combine);
        let is_product = matches!(self.combine, Combine::Reduce { reduce: Reduce::Mul, .. });
        let flat = |tensor: Tensor| if is_product { tensor.reshape(&[-1]) } else { Ok(tensor) };
        let g = flat(rule.g().clone())?;
        let scattered = Scattered {
            combine: self.combine,
            axis: if is_product { 0 } else { axis },
            along: match is_product {
                true => Along::Rows,
                false => Along::Elements { shape: entries.clone(), broadcast: self.broadcast },
            },
            made: Made::default(),
            g: &g,
            index: match is_product {
                true => flat(flat_index(&index, axis, shape, &entries)?)?,
                false => index,
            },
            x: read_x.then(|| rule.input(0).and_then(flat)).transpose()?,
            updates: read_values
                .then(|| rule.input(2).and_then(stretch).and_then(flat))
                .transpose()?,
            y: read_y.then(|| rule.output().and_then(flat)).transpose()?,
        };
        rule.each(|k| match k {
            0 => scattered.to_base()?.shaped(shape).map(Some),
            _ => {
                let grad = scattered.to_updates()?.shaped(&entries)?;
                match self.broadcast {
                    true => grad.shrink_to(rule.shape(2)).map(Some),
                    false => grad.among_zeros(rule.shape(2)).map(Some),
                }
            }
        })
    }
}

/// Returns, for each entry, the row-major position of its place among all elements of `shape`.
fn flat_index(index: &Tensor, axis: usize, shape: &[Dim], entries: &[Dim]) -> Result<Tensor> {
    let mut flat = index.filled(entries, false, DType::I64)?;
    for k in 0..shape.len() {
        let at = if k == axis {
            checked_index(&PUT_ALONG_AXIS, None, index, axis, shape[k])?
        } else {
            let mut along = vec![1; shape.len()];
            along[k] = -1;
            index.numbers(entries[k])?.reshape(&along)?
        };
        flat = flat.add(&at.multiply(&index.count(&shape[k + 1..], DType::I64)?)?)?;
    }
    Ok(flat)
}

impl Tensor {
    /// Returns a copy in which `x[i][index[i][j][k]][k] (op)= values[i][j][k]`, for axis 1 and for
    /// j in order. Other axes work likewise.
    ///
    /// ```
    /// # use inlay::{PutAlongAxis, Tensor};
    /// let x = Tensor::from([[0, 0, 0], [0, 0, 0]]);
    /// let (index, values) = (Tensor::from([[2i64], [0]]), Tensor::from([[7], [8]]));
    /// let y = x.put_along_axis(&index, &values, PutAlongAxis::assign(1))?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 0, 7, 8, 0, 0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, an axis or an index out of range, a reduction that is not
    /// defined for the dtype.
    #[track_caller]
    pub fn put_along_axis(
        &self,
        index: &Tensor,
        values: &Tensor,
        how: PutAlongAxis,
    ) -> Result<Tensor> {
        apply(how, &[self, index, values])
    }

    /// The in-place version of [`Tensor::put_along_axis`].
    ///
    /// ```
    /// # use inlay::{PutAlongAxis, Tensor};
    /// let x = Tensor::from([0, 0]);
    /// x.put_along_axis_(&Tensor::from([1i64]), &Tensor::from([7]), PutAlongAxis::assign(0))?;
    /// assert_eq!(x.to_vec::<i32>()?, [0, 7]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::put_along_axis`]; also memory that is read-only or overlaps itself.
    /// After an error, nothing was written.
    #[track_caller]
    pub fn put_along_axis_(
        &self,
        index: &Tensor,
        values: &Tensor,
        how: PutAlongAxis,
    ) -> Result<&Self> {
        apply_in_place(how, &[self, index, values]).map(|_| self)
    }
}
