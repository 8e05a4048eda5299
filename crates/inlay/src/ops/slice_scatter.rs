//! `slice_scatter`: a tensor into a slice of another, on one axis or several. And slicing itself.

use inlay_core::{Dims, Error, Layout, Meta, ResolvedSlice, Result, Slice, axis_of};
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use super::region::{Read, Region, Write};
use crate::Tensor;
use crate::device::Comb;
use crate::funnel::{apply, apply_in_place};

/// Slices of some axes, by Python's rules; the other axes are taken whole.
///
/// ```
/// use inlay::{Slice, SliceScatter};
///
/// let rows = SliceScatter::new(0, Slice::new(2, 8, 2));
/// let corner = rows.and(-1, Slice::new(None, 3, 1));
/// ```
#[derive(PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct SliceScatter {
    axes: SmallVec<[(i64, Slice); 2]>,
}

impl Clone for SliceScatter {
    // The vector's own clone goes through an iterator.
    fn clone(&self) -> Self {
        SliceScatter { axes: SmallVec::from_slice(&self.axes) }
    }
}

impl SliceScatter {
    /// A slice of one axis.
    pub fn new(axis: i64, slice: Slice) -> Self {
        SliceScatter { axes: smallvec![(axis, slice)] }
    }

    /// And a slice of another axis.
    #[must_use]
    pub fn and(mut self, axis: i64, slice: Slice) -> Self {
        self.axes.push((axis, slice));
        self
    }

    /// The axes from the front, each with what is selected of it.
    fn resolve(&self, shape: &[usize]) -> Result<SmallVec<[(usize, ResolvedSlice); 2]>> {
        let op = self.read_name();
        let mut resolved = SmallVec::new();
        for &(axis, slice) in &self.axes {
            let axis = axis_of(op, "axis", axis, shape.len())?;
            resolved.push((axis, slice.resolve(shape[axis]).ok_or_else(|| zero_step(op))?));
        }
        Ok(resolved)
    }
}

/// The error for a step of 0.
pub(super) fn zero_step(op: &'static str) -> Error {
    Error::Argument { op, arg: "step", got: "0".into(), expected: "anything but 0".into() }
}

impl Region for SliceScatter {
    fn read_name(&self) -> &'static str {
        "slice"
    }

    fn write_name(&self) -> (&'static str, &'static str, &'static str) {
        ("slice_scatter", "x", "y")
    }

    fn shape(&self, op: &'static str, arg: &'static str, x: &Meta) -> Result<Dims> {
        x.expect_rank_at_least(op, arg, 1)?;
        let mut shape = x.shape.clone();
        let mut seen: SmallVec<[usize; 2]> = SmallVec::new();
        for &(axis, slice) in &self.axes {
            let at = axis_of(op, "axis", axis, x.rank())?;
            if seen.contains(&at) {
                let expected = "each axis once".into();
                return Err(Error::Argument { op, arg: "axis", got: axis.to_string(), expected });
            }
            seen.push(at);
            if slice.step == 0 {
                return Err(zero_step(op));
            }
            if slice != Slice::ALL {
                shape[at] = shape[at].map(|size| slice.resolve(size).map_or(0, |slice| slice.len));
            }
        }
        Ok(shape)
    }

    fn layout(&self, x: &Layout) -> Result<Layout> {
        let mut layout = x.clone();
        for (axis, slice) in self.resolve(x.shape())? {
            layout.narrow(axis, slice);
        }
        Ok(layout)
    }

    /// For each axis in turn, what its slice leaves out of what the earlier slices selected.
    fn rest(&self, x: &Layout) -> Result<SmallVec<[Layout; 4]>> {
        let mut rest = SmallVec::new();
        let mut selected = x.clone();
        for (axis, slice) in self.resolve(x.shape())? {
            let size = x.shape()[axis];
            let part = |start, len| selected.slice(axis, ResolvedSlice { start, step: 1, len });
            if slice.len == 0 {
                rest.push(part(0, size));
                return Ok(rest);
            }
            let last = slice.start.wrapping_add_signed(slice.step * (slice.len as isize - 1));
            let (low, high) = (slice.start.min(last), slice.start.max(last));
            let step = slice.step.unsigned_abs();
            rest.push(part(0, low));
            rest.push(part(high + 1, size - high - 1));
            if step > 1 && slice.len > 1 {
                // Between two selected positions lie step - 1 others: one more dimension.
                let gaps =
                    ResolvedSlice { start: low + 1, step: step as isize, len: slice.len - 1 };
                let gaps = selected.slice(axis, gaps);
                let (mut shape, mut strides) = (gaps.shape().to_vec(), gaps.strides().to_vec());
                shape.insert(axis + 1, step - 1);
                strides.insert(axis + 1, selected.strides()[axis]);
                rest.push(Layout::strided(shape.into(), strides.into(), gaps.offset()));
            }
            selected = selected.slice(axis, slice);
        }
        Ok(rest)
    }

    fn comb(&self, x: &Layout) -> Result<Option<Comb>> {
        let slices = self.resolve(x.shape())?;
        let &[(axis, slice)] = slices.as_slice() else { return Ok(None) };
        if slice.step < 2 || slice.len < 2 || x.numel() == 0 {
            return Ok(None);
        }
        let width: usize = x.shape()[axis + 1..].iter().product();
        let (start, step) = (slice.start * width, slice.step.unsigned_abs() * width);
        let row = x.shape()[axis] * width;
        Ok(Some(Comb { row, start, step, width, teeth: slice.len }))
    }
}

impl Tensor {
    /// A copy in which the slices `at` are `y`, which has their shape.
    ///
    /// ```
    /// # use inlay::{Slice, SliceScatter, Tensor};
    /// let x = Tensor::from_slice(&[0i32; 6], &[6])?;
    /// let y = Tensor::from_slice(&[1, 2], &[2])?;
    /// let at = SliceScatter::new(0, Slice::new(-1, None, -3));
    /// assert_eq!(x.slice_scatter(&y, &at)?.to_vec::<i32>()?, [0, 0, 2, 0, 0, 1]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes and dtypes that don't fit, an axis out of range or named twice, a step of 0.
    #[track_caller]
    pub fn slice_scatter(&self, y: &Tensor, at: &SliceScatter) -> Result<Tensor> {
        apply(Write(at.clone()), &[self, y])
    }

    /// [`Tensor::slice_scatter`] in place.
    ///
    /// # Errors
    /// As there; also when the memory is read-only or overlaps itself. Then nothing was written.
    #[track_caller]
    pub fn slice_scatter_(&self, y: &Tensor, at: &SliceScatter) -> Result<&Self> {
        apply_in_place(Write(at.clone()), self, &[y]).map(|()| self)
    }

    /// The slices `at`, as a view.
    ///
    /// # Errors
    /// An axis out of range or named twice, a step of 0.
    #[track_caller]
    pub fn slice(&self, at: &SliceScatter) -> Result<Tensor> {
        apply(Read(at.clone()), &[self])
    }
}
