//! `slice_scatter`: writes a tensor into a slice of another, on one axis or several. Also slicing
//! itself.

use inlay_core::{Dims, Error, Integer, Layout, Meta, ResolvedSlice, Result, Slice, axis_of};
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use super::region::{ReadRegion, Region, WriteRegion};
use crate::Tensor;
use crate::declare::{Bounds, Operation, declare};
use crate::device::Comb;
use crate::funnel::{apply, apply_in_place};

declare! {
    /// Write `y` into a slice of `x`.
    ///
    /// Args:
    ///     x: the tensor to start from, of at least one dimension.
    ///     y: the tensor to write, of x's dtype and the shape of ``x[..., start:stop:step, ...]``.
    ///     axis, start, stop, step: the slice, by Python's rules: bounds are clamped, negative ones
    ///         count from the end, and the step is anything but 0. Lists of equal length slice
    ///         several axes at once.
    ///     name: the label of the node in a static graph.
    ///
    /// Returns:
    ///     A fresh tensor, or a NumPy array if no argument was a Tensor.
    ///
    /// Raises:
    ///     ValueError: a shape that does not fit, a step of 0, an axis named twice, lists of
    ///         different lengths.
    ///     IndexError: an axis out of range.
    ///     TypeError: dtypes that differ, bounds that are not integers.
    ///
    /// >>> import inlay, numpy as np
    /// >>> x = np.zeros((2, 4), dtype=int)
    /// >>> inlay.slice_scatter(x, [[1, 2], [3, 4]], axis=1, start=1, step=2)
    /// array([[0, 1, 0, 2],
    ///        [0, 3, 0, 4]])
    /// >>> inlay.slice_scatter(x, [[7, 8]], axis=[0, 1], start=[1, -2], stop=[2, 4], step=[1, 1])
    /// array([[0, 0, 0, 0],
    ///        [0, 0, 7, 8]])
    SLICE_SCATTER = "slice_scatter"(
        x: Tensor, y | src | value: Like, axis | axes: MaybeAxisList = 0,
        start | starts: MaybeBoundList = None, stop | end | ends: MaybeBoundList = None,
        step | strides: MaybeBoundList = 1, name: Label = None
    )
        gradients [x, y]
        batch Axes
        twin out => out.apply(WriteRegion(Slices::of(axis, start, stop, step)?), &[x, y]);

    SLICE = "slice"(x: Tensor);
}

/// Slices of some axes, by Python's rules. The other axes are taken whole.
///
/// ```
/// use inlay::{Slice, Slices};
///
/// let rows = Slices::new(0, Slice::new(2, 8, 2));
/// let corner = rows.and(-1, Slice::new(None, 3, 1));
/// ```
#[derive(PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Slices {
    axes: SmallVec<[(i64, Slice); 2]>,
}

/// The slices that [`Tensor::slice_scatter`] writes to.
pub type SliceScatter = Slices;

impl Clone for Slices {
    // `SmallVec::clone` goes through an iterator; `from_slice` copies the bytes at once.
    fn clone(&self) -> Self {
        Slices { axes: SmallVec::from_slice(&self.axes) }
    }
}

impl Slices {
    /// Returns a slice of one axis: a [`Slice`], or a range of any integer type.
    ///
    /// ```
    /// # use inlay::{Slice, Slices};
    /// assert_eq!(Slices::new(0, 1..3), Slices::new(0, Slice::new(1, 3, 1)));
    /// ```
    pub fn new(axis: impl Integer, slice: impl Into<Slice>) -> Self {
        Slices { axes: smallvec![(axis.to_i64(), slice.into())] }
    }

    /// Adds a slice of another axis.
    ///
    /// ```
    /// # use inlay::{DType, Slices, Tensor};
    /// let x = Tensor::zeros([4, 5], DType::F32)?;
    /// assert_eq!(x.slice(Slices::new(0, 1..3).and(1, ..-1))?.shape(), [2, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    #[must_use]
    pub fn and(mut self, axis: impl Integer, slice: impl Into<Slice>) -> Self {
        self.axes.push((axis.to_i64(), slice.into()));
        self
    }

    /// Sets the step of the slice that was added last.
    ///
    /// ```
    /// # use inlay::{Slice, Slices};
    /// assert_eq!(Slices::new(0, ..).step(-1), Slices::new(0, Slice::new(None, None, -1)));
    /// ```
    #[must_use]
    pub fn step(mut self, step: impl Integer) -> Self {
        if let Some((_, slice)) = self.axes.last_mut() {
            *slice = slice.step(step);
        }
        self
    }

    /// Makes slices of arguments that are single numbers, or lists with one number for each axis. A
    /// bound that is `None` is left out for all axes.
    fn of(
        axis: Option<&Bounds>,
        start: Option<&Bounds>,
        stop: Option<&Bounds>,
        step: Option<&Bounds>,
    ) -> Result<Self> {
        let (count, several) = axis.map_or((1, false), |axis| (axis.len(), axis.is_list()));
        for (arg, bounds) in [("start", start), ("stop", stop), ("step", step)] {
            let Some(bounds) = bounds else { continue };
            if bounds.is_list() != several || bounds.len() != count {
                let (op, have) = (SLICE_SCATTER.name, bounds.len().to_string());
                let got = if bounds.is_list() { &have } else { "one" };
                let of = if several { "a list of axes" } else { "one axis" };
                let expected = format!("as many as axes, {count}");
                return Err(Error::Argument { op, arg, got: format!("{got} for {of}"), expected });
            }
        }
        let at = |bounds: Option<&Bounds>, k: usize| bounds.and_then(|bounds| bounds.get(k));
        let mut slices = Slices::default();
        for k in 0..count {
            let (start, stop, step) = (at(start, k), at(stop, k), at(step, k).unwrap_or(1));
            slices.axes.push((at(axis, k).unwrap_or(0), Slice { start, stop, step }));
        }
        Ok(slices)
    }
}

/// An axis and its slice.
impl<A: Integer, S: Into<Slice>> From<(A, S)> for Slices {
    fn from((axis, slice): (A, S)) -> Self {
        Slices::new(axis, slice)
    }
}

impl From<&Slices> for Slices {
    fn from(slices: &Slices) -> Self {
        slices.clone()
    }
}

/// Returns the error for a step of 0.
pub(super) fn zero_step(op: &'static str) -> Error {
    Error::Argument { op, arg: "step", got: "0".into(), expected: "anything but 0".into() }
}

/// Returns what a slice selects from an axis of `size`. `Region::shape` has checked that the step
/// is not 0.
pub(super) fn selected(slice: Slice, size: usize) -> ResolvedSlice {
    slice.resolve(size).unwrap_or_else(|| unreachable!("`shape` has rejected a step of 0"))
}

impl Region for Slices {
    /// The axes, counted from the front, each with its slice.
    type Found = SmallVec<[(usize, Slice); 2]>;

    fn reader(&self) -> &'static Operation {
        &SLICE
    }

    fn writer(&self) -> &'static Operation {
        &SLICE_SCATTER
    }

    fn shape(&self, op: &'static str, arg: &'static str, x: &Meta) -> Result<(Dims, Self::Found)> {
        x.expect_rank_at_least(op, arg, 1)?;
        let mut shape = x.dims();
        let mut found = Self::Found::new();
        for &(axis, slice) in &self.axes {
            let at = axis_of(op, "axis", axis, x.rank())?;
            if found.iter().any(|(seen, _)| *seen == at) {
                let expected = "each axis once".into();
                return Err(Error::Argument { op, arg: "axis", got: axis.to_string(), expected });
            }
            found.push((at, slice));
            if slice.step == 0 {
                return Err(zero_step(op));
            }
            if slice != Slice::ALL {
                shape[at] = shape[at].map(|size| selected(slice, size).len);
            }
        }
        Ok((shape, found))
    }

    fn layout(&self, found: &Self::Found, x: &Layout) -> Layout {
        let part = |layout: &Layout, (axis, slice): (usize, Slice)| {
            layout.slice(axis, selected(slice, x.shape()[axis]))
        };
        match found.as_slice() {
            [] => x.clone(),
            &[first, ref more @ ..] => {
                more.iter().fold(part(x, first), |layout, &found| part(&layout, found))
            }
        }
    }

    /// For each axis in turn, the part of the earlier selections that its slice leaves out.
    fn rest(&self, found: &Self::Found, x: &Layout) -> SmallVec<[Layout; 4]> {
        rest(found, x)
    }

    fn comb(&self, found: &Self::Found, x: &Layout) -> Option<Comb> {
        let &[(axis, slice)] = found.as_slice() else { return None };
        let slice = selected(slice, x.shape()[axis]);
        if slice.step < 2 || slice.len < 2 || x.numel() == 0 {
            return None;
        }
        let width: usize = x.shape()[axis + 1..].iter().product();
        let (start, step) = (slice.start * width, slice.step.unsigned_abs() * width);
        let row = x.shape()[axis] * width;
        Some(Comb { row, start, step, width, teeth: slice.len })
    }
}

/// Returns the elements that slices of some axes leave out, as disjoint layouts.
pub(super) fn rest(slices: &[(usize, Slice)], x: &Layout) -> SmallVec<[Layout; 4]> {
    let mut rest = SmallVec::new();
    let mut taken = x.clone();
    for &(axis, slice) in slices {
        let size = x.shape()[axis];
        let slice = selected(slice, size);
        let part = |start, len| taken.slice(axis, ResolvedSlice::run(start, len));
        if slice.len == 0 {
            rest.push(part(0, size));
            return rest;
        }
        let last = slice.start.wrapping_add_signed(slice.step * (slice.len as isize - 1));
        let (low, high) = (slice.start.min(last), slice.start.max(last));
        let step = slice.step.unsigned_abs();
        rest.push(part(0, low));
        rest.push(part(high + 1, size - high - 1));
        if step > 1 && slice.len > 1 {
            // The step - 1 positions between two selected ones form one more dimension.
            let gaps = ResolvedSlice { start: low + 1, step: step as isize, len: slice.len - 1 };
            let gaps = taken.slice(axis, gaps);
            let (mut shape, mut strides) = (gaps.shape().to_vec(), gaps.strides().to_vec());
            shape.insert(axis + 1, step - 1);
            strides.insert(axis + 1, taken.strides()[axis]);
            rest.push(Layout::over(&shape, &strides, gaps.offset()));
        }
        taken = taken.slice(axis, slice);
    }
    rest
}

impl Tensor {
    /// Returns a copy in which the slices `at` are replaced by `y`, which has their shape.
    ///
    /// ```
    /// # use inlay::{SliceScatter, Tensor};
    /// let x = Tensor::from([0; 6]);
    /// let y = Tensor::from([1, 2]);
    /// assert_eq!(x.slice_scatter(&y, (0, 1..3))?.to_vec::<i32>()?, [0, 1, 2, 0, 0, 0]);
    /// let at = SliceScatter::new(0, -1..).step(-3);
    /// assert_eq!(x.slice_scatter(&y, at)?.to_vec::<i32>()?, [0, 0, 2, 0, 0, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, an axis out of range or named twice, a step of 0.
    #[track_caller]
    pub fn slice_scatter(&self, y: &Tensor, at: impl Into<SliceScatter>) -> Result<Tensor> {
        apply(WriteRegion(at.into()), &[self, y])
    }

    /// The in-place version of [`Tensor::slice_scatter`].
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([0; 4]);
    /// x.slice_scatter_(&Tensor::from([1, 2]), (0, 1..3))?;
    /// assert_eq!(x.to_vec::<i32>()?, [0, 1, 2, 0]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::slice_scatter`]; also memory that is read-only or overlaps itself.
    /// After an error, nothing was written.
    #[track_caller]
    pub fn slice_scatter_(&self, y: &Tensor, at: impl Into<SliceScatter>) -> Result<&Self> {
        apply_in_place(WriteRegion(at.into()), &[self, y]).map(|_| self)
    }

    /// Returns the slices `at` as a view.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.slice((1, ..-1))?.to_vec::<i32>()?, [1, 2, 4, 5]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis out of range or named twice, a step of 0.
    #[track_caller]
    pub fn slice(&self, at: impl Into<Slices>) -> Result<Tensor> {
        apply(ReadRegion(at.into()), &[self])
    }
}
