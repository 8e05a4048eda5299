//! The positions of a tensor's elements in memory: shape, strides in bytes, offset in bytes.
//!
//! Strides are in bytes, not in elements, so that a field of a packed record needs no copy.

use std::fmt;
use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::{Error, ResolvedSlice, Result};

/// The number of dimensions that are stored without an allocation. With 5 of them, a layout, the
/// handle to its memory and a dtype take 128 bytes, the largest size that is moved without a call
/// of `memcpy`. A tiny operation moves dozens of them.
pub(crate) const INLINE: usize = 5;

/// The sizes, one for each dimension.
pub type Shape = SmallVec<[usize; INLINE]>;
/// The strides in bytes, one for each dimension.
pub type Strides = SmallVec<[isize; INLINE]>;

/// A shape, strides in bytes, and the offset of the first element in bytes.
pub struct Layout {
    sizes: [usize; INLINE],
    strides: [isize; INLINE],
    /// All sizes and strides, if there are more than [`INLINE`].
    many: Option<Box<(Vec<usize>, Vec<isize>)>>,
    offset: usize,
    /// The number of dimensions, if there are at most [`INLINE`].
    rank: u8,
    /// The element size for which the layout is known to be contiguous, with bytes that fit into an
    /// `isize`; 0 if nothing is known. Most layouts are contiguous, and a call asks several times.
    dense: u8,
}

/// Collects `len` values. If they are few, the loop has a fixed length and is unrolled, which keeps
/// them in registers. An iterator, a call of `memcpy` or values in memory take longer: a move of
/// values that were just stored one by one stalls.
#[inline]
pub fn collect<T: Copy>(
    len: usize,
    nothing: T,
    value: impl Fn(usize) -> T,
) -> SmallVec<[T; INLINE]> {
    if len > INLINE {
        return (0..len).map(value).collect();
    }
    let mut all = [nothing; INLINE];
    for (k, to) in all.iter_mut().enumerate() {
        if k < len {
            *to = value(k);
        }
    }
    SmallVec::from_buf_and_len(all, len)
}

/// Copies values as [`collect`] does.
#[inline]
pub(crate) fn copied<T: Copy>(values: &[T], nothing: T) -> SmallVec<[T; INLINE]> {
    collect(values.len(), nothing, |k| values[k])
}

/// Returns `shape` with another size on `axis`.
#[inline]
pub fn resized(shape: &[usize], axis: usize, size: usize) -> Shape {
    let mut sizes = copied(shape, 0);
    sizes[axis] = size;
    sizes
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Self {
        self.derived(self.dense, self.rank(), self.offset, |k| self.dim(k))
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.offset == other.offset
            && self.shape() == other.shape()
            && self.strides() == other.strides()
    }
}

impl Eq for Layout {}

impl Hash for Layout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.shape(), self.strides(), self.offset).hash(state);
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("offset", &self.offset)
            .finish()
    }
}

impl Layout {
    /// Makes a layout of a size and a stride for each dimension. The loop is that of [`collect`].
    #[inline(always)]
    fn of(rank: usize, offset: usize, dim: impl Fn(usize) -> (usize, isize)) -> Self {
        let (mut sizes, mut strides, mut many) = ([0; INLINE], [0; INLINE], None);
        if rank > INLINE {
            many = Some(Box::new((0..rank).map(dim).unzip()));
        } else {
            for k in 0..INLINE {
                if k < rank {
                    (sizes[k], strides[k]) = dim(k);
                }
            }
        }
        Layout { sizes, strides, many, offset, rank: rank as u8, dense: 0 }
    }

    /// Makes a layout for some elements of this one. It is contiguous for elements of `dense` bytes.
    #[inline(always)]
    fn derived(
        &self,
        dense: u8,
        rank: usize,
        offset: usize,
        dim: impl Fn(usize) -> (usize, isize),
    ) -> Self {
        Layout { dense, ..Layout::of(rank, offset, dim) }
    }

    /// Returns the layout of a single element, without dimensions.
    #[inline]
    pub fn single() -> Self {
        Layout::of(0, 0, |_| (0, 0))
    }

    /// Returns the row-major layout without gaps. Fails if the number of bytes exceeds
    /// `isize::MAX`.
    #[inline(always)]
    pub fn contiguous(op: &'static str, shape: &[usize], size: usize) -> Result<Self> {
        Layout::row_major(shape, size, 0)
            .ok_or_else(|| Error::TooLarge { op, shape: shape.to_vec() })
    }

    /// Returns [`Layout::contiguous`] at an offset, or `None` if its bytes exceed an `isize`.
    #[inline(always)]
    fn row_major(shape: &[usize], size: usize, offset: usize) -> Option<Self> {
        let mut layout = Layout::of(shape.len(), offset, |k| (shape[k], 0));
        layout.dense = u8::try_from(size).unwrap_or(0);
        if shape.contains(&0) {
            return Some(layout);
        }
        let mut bytes = size;
        let mut stride_of = |dim: usize| {
            let stride = bytes as isize;
            bytes = bytes.checked_mul(dim)?;
            Some(stride)
        };
        match &mut layout.many {
            Some(many) => {
                for (stride, &dim) in many.1.iter_mut().zip(shape).rev() {
                    *stride = stride_of(dim)?;
                }
            }
            // In registers, as in `collect`.
            None => {
                for k in (0..INLINE).rev() {
                    if let Some(&dim) = shape.get(k) {
                        layout.strides[k] = stride_of(dim)?;
                    }
                }
            }
        }
        isize::try_from(bytes).ok().map(|_| layout)
    }

    /// Returns [`Layout::contiguous`] of the same shape.
    #[inline(always)]
    pub fn packed(&self, op: &'static str, size: usize) -> Result<Self> {
        match self.dense as usize == size {
            true => Ok(self.derived(self.dense, self.rank(), 0, |k| self.dim(k))),
            false => Layout::contiguous(op, self.shape(), size),
        }
    }

    /// Makes a layout of any shape, strides and offset. The owner of the memory must check
    /// [`Layout::extent`].
    ///
    /// # Panics
    /// If `shape` and `strides` differ in length.
    #[inline]
    pub fn over(shape: &[usize], strides: &[isize], offset: usize) -> Self {
        assert_eq!(shape.len(), strides.len(), "one stride for each dimension");
        Layout::of(shape.len(), offset, |k| (shape[k], strides[k]))
    }

    /// Makes the layout of an array of another library, whose strides are from its first element.
    ///
    /// Returns the layout relative to the lowest byte of the elements, the distance of that byte from
    /// the first element, and the number of bytes. Returns `None` if they exceed an `isize`.
    ///
    /// # Panics
    /// If `shape` and `strides` differ in length.
    #[inline]
    pub fn around(shape: &[usize], strides: &[isize], size: usize) -> Option<(Self, isize, usize)> {
        // The strides of an empty array are not used and may have any value.
        if shape.contains(&0) {
            return Layout::row_major(shape, size, 0).map(|layout| (layout, 0, 0));
        }
        let mut layout = Layout::over(shape, strides, 0);
        let (low, high) = layout.reach(size)?;
        let len = high.checked_sub(low)?;
        layout.offset = low.unsigned_abs();
        if layout.follows(size) {
            layout.dense = u8::try_from(size).unwrap_or(0);
        }
        Some((layout, low, len.unsigned_abs()))
    }

    /// The sizes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        match &self.many {
            None => &self.sizes[..self.rank as usize],
            Some(many) => &many.0,
        }
    }

    /// The strides in bytes.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        match &self.many {
            None => &self.strides[..self.rank as usize],
            Some(many) => &many.1,
        }
    }

    /// The size and the stride of one dimension.
    #[inline]
    fn dim(&self, axis: usize) -> (usize, isize) {
        (self.shape()[axis], self.strides()[axis])
    }

    /// The number of bytes from the start of the memory to the element at index 0, 0, ….
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The number of elements.
    ///
    /// A layout that passed [`Layout::extent`] may repeat elements (stride 0), so the number may
    /// overflow. It then saturates, and an allocation of that size fails.
    #[inline]
    pub fn numel(&self) -> usize {
        self.shape().iter().fold(1, |n, &dim| n.saturating_mul(dim))
    }

    /// Returns the range of bytes that the elements touch. Returns `None` if it leaves the address
    /// space or begins before byte 0.
    #[inline]
    pub fn extent(&self, size: usize) -> Option<std::ops::Range<usize>> {
        match self.dense as usize == size {
            true => Some(self.offset..self.offset.checked_add(self.numel() * size)?),
            false => self.extent_of_any(size),
        }
    }

    /// [`Layout::extent`] for any strides.
    fn extent_of_any(&self, size: usize) -> Option<std::ops::Range<usize>> {
        if self.shape().contains(&0) {
            return Some(self.offset..self.offset);
        }
        let (low, high) = self.reach(size)?;
        (self.offset <= isize::MAX as usize && low >= 0).then_some(low as usize..high as usize)
    }

    /// Returns the first byte, and the byte after the last one, of a layout that has elements.
    /// Returns `None` if one of them exceeds an `isize`.
    #[inline]
    fn reach(&self, size: usize) -> Option<(isize, isize)> {
        // Both ends only move outwards, so an end that overflows never becomes valid again.
        let (mut low, mut high) = (self.offset as isize, self.offset as isize);
        let mut fits = true;
        for (&dim, &stride) in self.shape().iter().zip(self.strides()) {
            let steps = (dim - 1) as isize;
            let (span, past) = steps.overflowing_mul(stride);
            let end = if span < 0 { &mut low } else { &mut high };
            let (moved, off) = end.overflowing_add(span);
            *end = moved;
            fits &= steps >= 0 && !past && !off;
        }
        let high = high.checked_add_unsigned(size)?;
        fits.then_some((low, high))
    }

    /// Whether the elements are in row-major order without gaps. The offset may be anything.
    #[inline]
    pub fn is_contiguous(&self, size: usize) -> bool {
        self.dense as usize == size || self.follows(size)
    }

    /// [`Layout::is_contiguous`] for any strides.
    fn follows(&self, size: usize) -> bool {
        let (mut expected, mut follows) = (size as isize, true);
        for (&dim, &stride) in self.shape().iter().zip(self.strides()).rev() {
            follows &= dim == 1 || stride == expected;
            // If all strides match so far, the elements are in memory and the product does not
            // wrap.
            expected = expected.wrapping_mul(dim as isize);
        }
        follows || self.shape().contains(&0)
    }

    /// Whether two elements may share a byte.
    ///
    /// The result is exact for all layouts that slicing, transposing and broadcasting make. Other
    /// layouts, whose elements interleave without a shared byte, may also count as overlapping.
    #[inline]
    pub fn overlaps_itself(&self, size: usize) -> bool {
        self.dense as usize != size && self.any_overlap(size)
    }

    /// [`Layout::overlaps_itself`] for any strides.
    fn any_overlap(&self, size: usize) -> bool {
        if self.shape().contains(&0) {
            return false;
        }
        let dims = self.shape().iter().zip(self.strides()).filter(|(dim, _)| **dim > 1);
        let dims = dims.map(|(&dim, &stride)| (stride.unsigned_abs(), dim)).rev();
        // Row-major layouts are already sorted.
        if reach_past_each_other(size, dims.clone()) {
            return false;
        }
        let mut dims: SmallVec<[(usize, usize); INLINE]> = dims.collect();
        dims.sort_unstable();
        !reach_past_each_other(size, dims.into_iter())
    }

    /// What is known of a part that has all positions of the axes after `axis`, and some consecutive
    /// ones of `axis`: it is contiguous if this layout is and has one position of each axis before.
    #[inline]
    fn dense_in(&self, axis: usize) -> u8 {
        if self.shape()[..axis].iter().all(|&dim| dim == 1) { self.dense } else { 0 }
    }

    /// Returns the positions of `slice` on `axis`.
    #[inline]
    pub fn slice(&self, axis: usize, slice: ResolvedSlice) -> Self {
        let consecutive = slice.step == 1 || slice.len < 2;
        let dense = if consecutive { self.dense_in(axis) } else { 0 };
        let offset = if slice.len > 0 { self.at(axis, slice.start) } else { self.offset };
        self.derived(dense, self.rank(), offset, |k| match self.dim(k) {
            dim if k != axis => dim,
            // The stride of a single position is not used, and the product might overflow.
            (_, stride) if slice.len > 1 => (slice.len, stride * slice.step),
            (_, stride) => (slice.len, stride),
        })
    }

    /// Returns one position of `axis`. The axis is dropped.
    #[inline]
    pub fn select(&self, axis: usize, position: usize) -> Self {
        self.dropped(axis, self.at(axis, position))
    }

    /// Returns the offset of a position of `axis`. A layout without elements has no such position.
    #[inline]
    fn at(&self, axis: usize, position: usize) -> usize {
        match self.shape().contains(&0) {
            true => self.offset,
            false => {
                let step = self.strides()[axis] * position as isize;
                self.offset.wrapping_add_signed(step)
            }
        }
    }

    /// Returns the layout without `axis`, at position 0 of the axis.
    #[inline]
    pub fn without_axis(&self, axis: usize) -> Self {
        self.dropped(axis, self.offset)
    }

    /// Returns the layout without `axis`, with another offset.
    #[inline(always)]
    fn dropped(&self, axis: usize, offset: usize) -> Self {
        let dim = |k: usize| self.dim(k + usize::from(k >= axis));
        self.derived(self.dense_in(axis), self.rank() - 1, offset, dim)
    }

    /// Returns the layout with a dimension of size 1 inserted before `axis`.
    pub fn insert_axis(&self, axis: usize) -> Self {
        self.derived(self.dense, self.rank() + 1, self.offset, |k| match k.cmp(&axis) {
            std::cmp::Ordering::Less => self.dim(k),
            std::cmp::Ordering::Equal => (1, 0),
            std::cmp::Ordering::Greater => self.dim(k - 1),
        })
    }

    /// Returns the diagonal of two different axes. Both are dropped, and the diagonal becomes the
    /// last axis.
    pub fn diagonal(&self, offset: i64, axis1: usize, axis2: usize) -> Self {
        let ((rows, down), (cols, right)) = (self.dim(axis1), self.dim(axis2));
        let len = diagonal_len(rows, cols, offset);
        let start = match (len, offset >= 0) {
            (0, _) => self.offset,
            (_, true) => self.at(axis2, offset.unsigned_abs() as usize),
            (_, false) => self.at(axis1, offset.unsigned_abs() as usize),
        };
        // The stride of a single element is not used, and the sum of two strides might overflow.
        let stride = if len > 1 { down + right } else { 0 };
        let (low, high) = (axis1.min(axis2), axis1.max(axis2));
        let kept = self.rank() - 2;
        self.derived(0, kept + 1, start, |k| match k {
            k if k == kept => (len, stride),
            k if k < low => self.dim(k),
            k if k + 1 < high => self.dim(k + 1),
            k => self.dim(k + 2),
        })
    }

    /// Returns the axes in the order of `perm`, which is a permutation of them.
    pub fn transpose(&self, perm: &[usize]) -> Self {
        let dense = if perm.is_sorted() { self.dense } else { 0 };
        self.derived(dense, perm.len(), self.offset, |k| self.dim(perm[k]))
    }

    /// Broadcasts to `shape` by NumPy's rules. Returns `None` if they don't allow it.
    pub fn broadcast_to(&self, shape: &[usize]) -> Option<Self> {
        let extra = shape.len().checked_sub(self.rank())?;
        let fits = self
            .shape()
            .iter()
            .zip(&shape[extra..])
            .all(|(&have, &want)| have == want || have == 1);
        if !fits {
            return None;
        }
        let grown = Layout::of(shape.len(), self.offset, |k| {
            let stride = match k.checked_sub(extra) {
                Some(axis) if self.shape()[axis] == shape[k] => self.strides()[axis],
                _ => 0,
            };
            (shape[k], stride)
        });
        // With as many elements, only dimensions of size 1 are new.
        let dense = if grown.numel() == self.numel() { self.dense } else { 0 };
        Some(Layout { dense, ..grown })
    }

    /// Returns a view of the same elements in row-major order in another shape. Returns `None` if
    /// strides can't express it. The numbers of elements must be equal.
    pub fn reshape(&self, shape: &[usize]) -> Option<Self> {
        if self.dense > 0 {
            return Layout::row_major(shape, self.dense as usize, self.offset);
        }
        let mut strides: Strides = collect(shape.len(), 0, |_| 0);
        if !self.shape().contains(&0) {
            // The strides of old dimensions of size 1 are not used.
            let old: SmallVec<[(usize, isize); INLINE]> =
                (0..self.rank()).map(|k| self.dim(k)).filter(|(dim, _)| *dim != 1).collect();
            let (mut next, mut axis) = (0, 0);
            while next < old.len() {
                // Finds the smallest groups of old and new dimensions with equal products.
                let (group, new_group) = (next, axis);
                let (mut have, mut want) = (old[next].0, *shape.get(axis)?);
                (next, axis) = (next + 1, axis + 1);
                while have != want {
                    if have < want {
                        let (dim, _) = *old.get(next)?;
                        have = have.checked_mul(dim)?;
                        next += 1;
                    } else {
                        want = want.checked_mul(*shape.get(axis)?)?;
                        axis += 1;
                    }
                }
                let joined = old[group..next]
                    .windows(2)
                    .all(|pair| pair[0].1 == pair[1].1.wrapping_mul(pair[1].0 as isize));
                if !joined {
                    return None;
                }
                let mut stride = old[next - 1].1;
                for axis in (new_group..axis).rev() {
                    strides[axis] = stride;
                    stride = stride.wrapping_mul(shape[axis] as isize);
                }
            }
        }
        Some(Layout::over(shape, &strides, self.offset))
    }
}

/// Whether each stride exceeds all bytes that the dimensions before it span, so that no two
/// elements overlap. `dims` are pairs of a stride and a size.
fn reach_past_each_other(size: usize, dims: impl Iterator<Item = (usize, usize)>) -> bool {
    let mut reach = size;
    for (stride, dim) in dims {
        if stride < reach {
            return false;
        }
        // A span that saturates exceeds any memory.
        reach = reach.saturating_add(stride.saturating_mul(dim - 1));
    }
    true
}

/// Returns the length of the diagonal at `offset` of a `rows x cols` matrix.
pub(crate) fn diagonal_len(rows: usize, cols: usize, offset: i64) -> usize {
    let shift = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    if offset >= 0 {
        rows.min(cols.saturating_sub(shift))
    } else {
        rows.saturating_sub(shift).min(cols)
    }
}

#[cfg(test)]
mod tests;
