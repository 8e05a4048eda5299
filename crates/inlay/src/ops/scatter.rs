//! `scatter`: writes rows of updates to the places along an axis that an index names.

use std::borrow::Cow;

use inlay_core::{
    Combine, Dim, Dims, Error, Integer, Meta, Reduce, ResolvedSlice, Result, ShapeText, axis_of,
    expect_shape,
};
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::names::Caller;
use super::scatter_grad::{Along, Made, Scattered, reads};
use crate::array::Array;
use crate::declare::{Advice, Operation, declare};
use crate::funnel::{apply, apply_in_place};
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule, Saves};
use crate::{Tensor, device};

declare! {
    /// Write rows of `updates` to the places along `axis` that `index` names.
    ///
    /// Along `axis`, for i in order: ``x[index[i]] (op)= updates[i]``.
    ///
    /// Args:
    ///     x: the tensor to start from, of at least one dimension.
    ///     index: integers, 1-D, or 0-D for a single row. Negative entries count from the end.
    ///     updates: of x's dtype and x's shape, except on `axis`, where it has at least one row for
    ///         each entry of the index. Further rows are ignored. For a 0-D index it lacks `axis`.
    ///     overwrite: True assigns and ignores `reduce`: the last update of a place wins. False
    ///         sets each place that the index names to the reduction of its updates.
    ///     axis: the axis along which the index counts.
    ///     reduce: 'sum' (or 'add'), 'mul' (or 'multiply', 'prod'), 'mean', 'amax' (or 'max'),
    ///         'amin' (or 'min').
    ///     name: the label of the node in a static graph.
    ///     include_self: whether the old value of a place takes part in its reduction.
    ///
    /// Returns:
    ///     A fresh tensor, or a NumPy array if no argument was a Tensor. Places that the index does
    ///     not name keep x.
    ///
    /// Float sums and products equal those of a plain loop in index order, with any number of
    /// threads. ``float16`` and ``bfloat16`` are reduced in ``float32`` and rounded once. Integers
    /// wrap, and their mean is rounded down.
    ///
    /// Raises:
    ///     IndexError: an index or the axis is out of range.
    ///     ValueError: a shape that does not fit, an unknown `reduce`.
    ///     TypeError: dtypes that differ, an index that is not of integers, 'mean' of bool, 'amax'
    ///         and 'amin' of complex numbers.
    ///
    /// >>> import inlay, numpy as np
    /// >>> x = np.array([1., 1., 1.])
    /// >>> inlay.scatter(x, [0, 2, 0], [10., 20., 30.])
    /// array([30.,  1., 20.])
    /// >>> inlay.scatter(x, [0, 2, 0], [10., 20., 30.], overwrite=False)
    /// array([40.,  1., 20.])
    /// >>> inlay.scatter(x, [0, 2, 0], [10., 20., 30.], overwrite=False, reduce='mean',
    /// ...               include_self=True)
    /// array([13.66666667,  1.        , 10.5       ])
    SCATTER = "scatter"(
        x: Tensor, index: Index, updates: Like, overwrite: Flag = true, axis: Int = 0,
        reduce: Reduction = sum, name: Label = None, *, include_self: Flag = false
    )
        gradients [x, updates]
        batch Rows
        advice Advice::new(
            "reduce",
            "overwrite",
            "scatter: reduce has no effect while overwrite is True, which it is by default; \
            pass overwrite=False to reduce",
        );
        twin out => {
            let how = if overwrite { Scatter::overwrite() } else { Scatter::reduce(reduce) };
            out.apply(how.include_self(include_self).axis(axis), &[x, index, updates])
        };
}

/// How [`Tensor::scatter`] writes: `x[index[i]] (op)= updates[i]` along an axis.
///
/// ```
/// use inlay::{Reduce, Scatter};
///
/// let assign = Scatter::overwrite();
/// let mean = Scatter::reduce(Reduce::Mean).include_self(true).axis(-1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Scatter {
    /// The operation that the user called.
    name: Caller,
    pub(super) axis: i64,
    pub(super) combine: Combine,
}

impl Scatter {
    /// Assigns: the last update of a place wins.
    ///
    /// ```
    /// # use inlay::{Scatter, Tensor};
    /// let (x, index, updates) = (Tensor::from([1, 1]), Tensor::from([0i64, 0]), Tensor::from([5, 6]));
    /// assert_eq!(x.scatter(&index, &updates, Scatter::overwrite())?.to_vec::<i32>()?, [6, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn overwrite() -> Self {
        Scatter { name: Caller(&SCATTER), axis: 0, combine: Combine::Assign }
    }

    /// Sets each place that the index names to the reduction of its updates.
    ///
    /// ```
    /// # use inlay::{Reduce, Scatter, Tensor};
    /// let (x, index, updates) = (Tensor::from([1, 1]), Tensor::from([0i64, 0]), Tensor::from([5, 6]));
    /// let sum = Scatter::reduce(Reduce::Sum);
    /// assert_eq!(x.scatter(&index, &updates, sum)?.to_vec::<i32>()?, [11, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn reduce(reduce: Reduce) -> Self {
        let combine = Combine::Reduce { reduce, include_self: false };
        Scatter { combine, ..Scatter::overwrite() }
    }

    /// Sets whether the old value of a place takes part in its reduction. By default it does not.
    /// An assignment ignores this.
    ///
    /// ```
    /// # use inlay::{Reduce, Scatter, Tensor};
    /// let (x, index, updates) = (Tensor::from([1, 1]), Tensor::from([0i64, 0]), Tensor::from([5, 6]));
    /// let sum = Scatter::reduce(Reduce::Sum).include_self(true);
    /// assert_eq!(x.scatter(&index, &updates, sum)?.to_vec::<i32>()?, [12, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    #[must_use]
    pub fn include_self(mut self, include: bool) -> Self {
        if let Combine::Reduce { include_self, .. } = &mut self.combine {
            *include_self = include;
        }
        self
    }

    /// Returns this scatter under the name of another operation, whose third tensor is the updates.
    pub(super) fn called(mut self, operation: &'static Operation) -> Self {
        self.name = Caller(operation);
        self
    }

    /// Sets the axis along which the index counts. It is 0 by default; negative axes count from the
    /// end.
    ///
    /// ```
    /// # use inlay::{Scatter, Tensor};
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// let (index, updates) = (Tensor::from([1i64]), Tensor::from([[8], [9]]));
    /// let y = x.scatter(&index, &updates, Scatter::overwrite().axis(-1))?;
    /// assert_eq!(y.to_vec::<i32>()?, [1, 8, 3, 9]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    #[must_use]
    pub fn axis(mut self, axis: impl Integer) -> Self {
        self.axis = axis.to_i64();
        self
    }
}

/// Fails if the reduction is not defined for the dtype.
pub(super) fn expect_defined(op: &'static str, combine: Combine, x: &Meta) -> Result<()> {
    match combine {
        Combine::Reduce { reduce, .. } if !reduce.is_defined_for(x.dtype) => {
            Err(Error::Undefined { op, what: reduce.to_string(), dtype: x.dtype })
        }
        _ => Ok(()),
    }
}

impl Op for Scatter {
    type Inputs = Inputs<3>;
    /// The axis, counted from the front.
    type Found = usize;
    const WRITES: bool = true;

    fn operation(&self) -> &'static Operation {
        self.name.0
    }

    fn infer(&self, [x, index, updates]: &[Meta; 3]) -> Result<Inferred<usize>> {
        let (op, arg) = (self.name(), self.name.0.source);
        x.expect_rank_at_least(op, "x", 1)?;
        let axis = axis_of(op, "axis", self.axis, x.rank())?;
        index.expect_index(op, "index")?;
        if index.rank() > 1 {
            let expected = "0 or 1";
            return Err(Error::Rank { op, arg: "index", got: index.rank(), expected });
        }
        updates.expect_dtype_of(op, arg, x, "x")?;
        expect_defined(op, self.combine, x)?;

        let mut expected = x.dims();
        match index.shape.first() {
            None => {
                expected.remove(axis);
            }
            Some(&entries) => {
                // There may be more updates than entries; the rest is ignored.
                expected[axis] = entries;
                if let (Some(Dim::Known(have)), Dim::Known(least)) =
                    (updates.shape.get(axis).filter(|_| updates.rank() == x.rank()), entries)
                {
                    if *have < least {
                        let got = ShapeText::of(&updates.shape);
                        return Err(Error::TooShort { op, arg, got, axis, least });
                    }
                    expected[axis] = Dim::Known(*have);
                }
            }
        }
        expect_shape(op, arg, &updates.shape, &expected)?;
        Inferred::new(x.clone(), axis)
    }

    fn run(
        &self,
        [x, index, updates]: &[&Array; 3],
        &Inferred { found: axis, .. }: &Inferred<usize>,
        out: Out,
    ) -> Result<Array> {
        let op = self.name();
        let updates = match index.shape().first() {
            None => Cow::Owned(updates.with_layout(updates.layout.insert_axis(axis))),
            Some(&entries) if entries == updates.shape()[axis] => Cow::Borrowed(*updates),
            Some(&entries) => {
                let used = ResolvedSlice::run(0, entries);
                Cow::Owned(updates.with_layout(updates.layout.slice(axis, used)))
            }
        };
        let (to, base) = out.of(op, x)?;
        device::scatter_rows(&to, base, axis, (op, "index", index), &updates, self.combine)?;
        Ok(to)
    }

    fn saves(&self) -> Saves {
        let (x, updates, y) = reads(self.combine);
        let inputs = u32::from(x) | 1 << 1 | u32::from(updates) << 2;
        Saves { inputs, output: y }
    }

    fn grad(&self, rule: &Rule<'_>, &axis: &usize) -> Result<Grads> {
        let (read_x, read_updates, read_y) = reads(self.combine);
        let index = rule.input(1)?.reshape(&[-1])?;
        // `rows` is the shape of the updates with the axis that a 0-D index lacks. `used` leaves
        // out the updates past the index.
        let mut rows = Dims::from_slice(rule.shape(2));
        if rule.meta(1).rank() == 0 {
            rows.insert(axis, Dim::Known(1));
        }
        let mut used = rows.clone();
        used[axis] = index.dims()[0];
        let used = Block::first(&used);
        let scattered = Scattered {
            combine: self.combine,
            axis,
            along: Along::Rows,
            made: Made::default(),
            g: rule.g(),
            x: read_x.then(|| rule.input(0)).transpose()?,
            updates: match read_updates {
                true => Some(rule.input(2)?.shaped(&rows)?.block(&used)?),
                false => None,
            },
            y: read_y.then(|| rule.output()).transpose()?,
            index,
        };
        rule.each(|k| match k {
            0 => scattered.to_base().map(Some),
            _ => scattered.to_updates()?.among_zeros(&rows)?.shaped(rule.shape(2)).map(Some),
        })
    }
}

impl Tensor {
    /// Returns a copy in which, along an axis and for i in order, `x[index[i]] (op)= updates[i]`.
    ///
    /// `index` is 1-D with as many entries as `updates` has rows (further rows are ignored), or 0-D
    /// for a single row. Duplicates are processed in index order.
    ///
    /// ```
    /// # use inlay::{Reduce, Scatter, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 1, 1], &[3])?;
    /// let index = Tensor::from_slice(&[0i64, 0, -1], &[3])?;
    /// let updates = Tensor::from_slice(&[10i32, 20, 30], &[3])?;
    /// let sum = Scatter::reduce(Reduce::Sum);
    /// assert_eq!(x.scatter(&index, &updates, sum)?.to_vec::<i32>()?, [30, 1, 30]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, an axis or an index out of range, a reduction that is not
    /// defined for the dtype.
    #[track_caller]
    pub fn scatter(&self, index: &Tensor, updates: &Tensor, how: Scatter) -> Result<Tensor> {
        apply(how, &[self, index, updates])
    }

    /// The in-place version of [`Tensor::scatter`].
    ///
    /// ```
    /// # use inlay::{Scatter, Tensor};
    /// let (x, index, updates) = (Tensor::from([1, 1]), Tensor::from([0i64, 0]), Tensor::from([5, 6]));
    /// x.scatter_(&index, &updates, Scatter::overwrite())?;
    /// assert_eq!(x.to_vec::<i32>()?, [6, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::scatter`]; also memory that is read-only or overlaps itself. After
    /// an error, nothing was written.
    #[track_caller]
    pub fn scatter_(&self, index: &Tensor, updates: &Tensor, how: Scatter) -> Result<&Self> {
        apply_in_place(how, &[self, index, updates]).map(|_| self)
    }
}
