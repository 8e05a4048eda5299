//! The positions of a tensor's elements in memory: shape, strides in bytes, offset in bytes.
//!
//! Strides are in bytes, not in elements, so that a field of a packed record needs no copy.

use smallvec::SmallVec;

use crate::{Error, ResolvedSlice, Result};

/// The number of dimensions that are stored without an allocation. With 5 of them, a layout and the
/// handle to its memory take 128 bytes, the largest size that is moved without a call of `memcpy`.
/// A tiny operation moves dozens of them.
pub(crate) const INLINE: usize = 5;

/// The sizes, one for each dimension.
pub type Shape = SmallVec<[usize; INLINE]>;
/// The strides in bytes, one for each dimension.
pub type Strides = SmallVec<[isize; INLINE]>;

/// A shape, strides in bytes, and the offset of the first element in bytes.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    shape: Shape,
    strides: Strides,
    offset: usize,
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

/// Returns `len` strides of 0.
#[inline]
fn none(len: usize) -> Strides {
    collect(len, 0, |_| 0)
}

/// Returns the strides of a contiguous array, or `None` if its bytes exceed an `isize`.
#[inline]
fn row_major(shape: &[usize], size: usize) -> Option<Strides> {
    let mut bytes = size;
    let mut stride_of = |dim: usize| {
        let stride = bytes as isize;
        bytes = bytes.checked_mul(dim)?;
        Some(stride)
    };
    let mut strides = none(shape.len());
    if shape.len() > INLINE {
        for (stride, &dim) in strides.iter_mut().zip(shape).rev() {
            *stride = stride_of(dim)?;
        }
    } else {
        // In registers, as in `collect`.
        let mut all = [0; INLINE];
        for k in (0..INLINE).rev() {
            if let Some(&dim) = shape.get(k) {
                all[k] = stride_of(dim)?;
            }
        }
        strides = SmallVec::from_buf_and_len(all, shape.len());
    }
    isize::try_from(bytes).ok().map(|_| strides)
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
        let (shape, strides) = (copied(&self.shape, 0), copied(&self.strides, 0));
        Layout { shape, strides, offset: self.offset }
    }
}

impl Layout {
    /// Returns the layout of a single element, without dimensions.
    #[inline]
    pub fn single() -> Self {
        Layout { shape: Shape::new(), strides: Strides::new(), offset: 0 }
    }

    /// Returns the row-major layout without gaps. Fails if the number of bytes exceeds
    /// `isize::MAX`.
    pub fn contiguous(op: &'static str, shape: &[usize], size: usize) -> Result<Self> {
        let strides = match shape.contains(&0) {
            true => Some(none(shape.len())),
            false => row_major(shape, size),
        };
        let strides = strides.ok_or_else(|| Error::TooLarge { op, shape: shape.to_vec() })?;
        Ok(Layout { shape: copied(shape, 0), strides, offset: 0 })
    }

    /// Makes a layout of any shape, strides and offset. The owner of the memory must check
    /// [`Layout::extent`].
    ///
    /// # Panics
    /// If `shape` and `strides` differ in length.
    pub fn strided(shape: Shape, strides: Strides, offset: usize) -> Self {
        assert_eq!(shape.len(), strides.len(), "one stride for each dimension");
        Layout { shape, strides, offset }
    }

    /// Like [`Layout::strided`], from borrowed sizes and strides.
    ///
    /// # Panics
    /// If `shape` and `strides` differ in length.
    pub fn over(shape: &[usize], strides: &[isize], offset: usize) -> Self {
        Layout::strided(copied(shape, 0), copied(strides, 0), offset)
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The strides in bytes.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The number of bytes from the start of the memory to the element at index 0, 0, ….
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    ///
    /// A layout that passed [`Layout::extent`] may repeat elements (stride 0), so the number may
    /// overflow. It then saturates, and an allocation of that size fails.
    #[inline]
    pub fn numel(&self) -> usize {
        self.shape.iter().fold(1, |n, &dim| n.saturating_mul(dim))
    }

    /// Returns the range of bytes that the elements touch. Returns `None` if it leaves the address
    /// space or begins before byte 0.
    pub fn extent(&self, size: usize) -> Option<std::ops::Range<usize>> {
        // Both ends only move outwards, so an end that overflows never becomes valid again. But the
        // range is empty if a later dimension has no elements, so the loop continues.
        let (shape, strides) = (self.shape(), self.strides());
        let (mut low, mut high) = (self.offset as isize, self.offset as isize);
        let mut fits = low >= 0;
        for (&dim, &stride) in shape.iter().zip(strides) {
            if dim == 0 {
                return Some(self.offset..self.offset);
            }
            let steps = (dim - 1) as isize;
            let (span, past) = steps.overflowing_mul(stride);
            let end = if span < 0 { &mut low } else { &mut high };
            let (moved, off) = end.overflowing_add(span);
            *end = moved;
            fits &= steps >= 0 && !past && !off;
        }
        let high = high.checked_add_unsigned(size)?;
        (fits && low >= 0).then_some(low as usize..high as usize)
    }

    /// Whether the elements are in row-major order without gaps. The offset may be anything.
    pub fn is_contiguous(&self, size: usize) -> bool {
        let (mut expected, mut follows) = (size as isize, true);
        for (&dim, &stride) in self.shape.iter().zip(&self.strides).rev() {
            follows &= dim == 1 || stride == expected;
            // If all strides match so far, the elements are in memory and the product does not
            // wrap.
            expected = expected.wrapping_mul(dim as isize);
        }
        follows || self.shape.contains(&0)
    }

    /// Whether two elements may share a byte.
    ///
    /// The result is exact for all layouts that slicing, transposing and broadcasting make. Other
    /// layouts, whose elements interleave without a shared byte, may also count as overlapping.
    pub fn overlaps_itself(&self, size: usize) -> bool {
        if self.shape.contains(&0) {
            return false;
        }
        let dims = self.shape.iter().zip(&self.strides).filter(|(dim, _)| **dim > 1);
        let dims = dims.map(|(&dim, &stride)| (stride.unsigned_abs(), dim)).rev();
        // Row-major layouts are already sorted.
        if reach_past_each_other(size, dims.clone()) {
            return false;
        }
        let mut dims: SmallVec<[(usize, usize); INLINE]> = dims.collect();
        dims.sort_unstable();
        !reach_past_each_other(size, dims.into_iter())
    }

    /// Returns the positions of `slice` on `axis`.
    pub fn slice(&self, axis: usize, slice: ResolvedSlice) -> Self {
        let mut out = self.clone();
        out.narrow(axis, slice);
        out
    }

    /// Replaces the layout by its [`Layout::slice`].
    pub fn narrow(&mut self, axis: usize, slice: ResolvedSlice) {
        self.shape[axis] = slice.len;
        if slice.len > 0 {
            self.advance(axis, slice.start);
            // The stride of a single position is not used, and the product might overflow.
            if slice.len > 1 {
                self.strides[axis] *= slice.step;
            }
        }
    }

    /// Returns one position of `axis`. The axis is dropped.
    pub fn select(&self, axis: usize, position: usize) -> Self {
        let mut out = self.clone();
        out.advance(axis, position);
        out.remove_axis(axis);
        out
    }

    /// Moves the origin along `axis`. A layout without elements has no origin.
    fn advance(&mut self, axis: usize, position: usize) {
        if !self.shape.contains(&0) {
            let step = self.strides[axis] * position as isize;
            self.offset = self.offset.wrapping_add_signed(step);
        }
    }

    fn remove_axis(&mut self, axis: usize) {
        self.shape.remove(axis);
        self.strides.remove(axis);
    }

    /// Returns the layout without `axis`, at position 0 of the axis.
    pub fn without_axis(&self, axis: usize) -> Self {
        let mut out = self.clone();
        out.remove_axis(axis);
        out
    }

    /// Returns the layout with a dimension of size 1 inserted before `axis`.
    pub fn insert_axis(&self, axis: usize) -> Self {
        let mut out = self.clone();
        out.shape.insert(axis, 1);
        out.strides.insert(axis, 0);
        out
    }

    /// Returns the diagonal of two different axes. Both are dropped, and the diagonal becomes the
    /// last axis.
    pub fn diagonal(&self, offset: i64, axis1: usize, axis2: usize) -> Self {
        let (rows, cols) = (self.shape[axis1], self.shape[axis2]);
        let len = diagonal_len(rows, cols, offset);
        let mut out = self.clone();
        if len > 0 {
            let start = offset.unsigned_abs() as usize;
            out.advance(if offset >= 0 { axis2 } else { axis1 }, start);
        }
        // The stride of a single element is not used, and the sum of two strides might overflow.
        let stride = if len > 1 { self.strides[axis1] + self.strides[axis2] } else { 0 };
        out.remove_axis(axis1.max(axis2));
        out.remove_axis(axis1.min(axis2));
        out.shape.push(len);
        out.strides.push(stride);
        out
    }

    /// Returns the axes in the order of `perm`, which is a permutation of them.
    pub fn transpose(&self, perm: &[usize]) -> Self {
        Layout {
            shape: perm.iter().map(|&axis| self.shape[axis]).collect(),
            strides: perm.iter().map(|&axis| self.strides[axis]).collect(),
            offset: self.offset,
        }
    }

    /// Broadcasts to `shape` by NumPy's rules. Returns `None` if they don't allow it.
    pub fn broadcast_to(&self, shape: &[usize]) -> Option<Self> {
        let extra = shape.len().checked_sub(self.rank())?;
        let mut strides = none(shape.len());
        for (axis, (&dim, &stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            match (dim, shape[extra + axis]) {
                (have, want) if have == want => strides[extra + axis] = stride,
                (1, _) => {}
                _ => return None,
            }
        }
        Some(Layout { shape: copied(shape, 0), strides, offset: self.offset })
    }

    /// Returns a view of the same elements in row-major order in another shape. Returns `None` if
    /// strides can't express it. The numbers of elements must be equal.
    pub fn reshape(&self, shape: &[usize]) -> Option<Self> {
        let mut strides = none(shape.len());
        if !self.shape.contains(&0) {
            // The strides of old dimensions of size 1 are not used.
            let old: SmallVec<[(usize, isize); INLINE]> = (self.shape.iter().copied())
                .zip(self.strides.iter().copied())
                .filter(|(dim, _)| *dim != 1)
                .collect();
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
        Some(Layout { shape: copied(shape, 0), strides, offset: self.offset })
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
mod tests {
    use super::*;
    use crate::Slice;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous("test", shape, 4).expect("small")
    }

    #[test]
    fn sizes_that_overflow_are_an_error() {
        assert!(Layout::contiguous("test", &[usize::MAX, 2], 1).is_err());
        assert!(Layout::contiguous("test", &[1 << 62], 4).is_err());
        assert!(Layout::contiguous("test", &[usize::MAX, usize::MAX, 0], 16).is_ok());
    }

    #[test]
    fn reshape_views_where_strides_allow() {
        let x = layout(&[2, 3, 4]);
        assert_eq!(x.reshape(&[6, 4]), Some(layout(&[6, 4])));
        assert_eq!(x.reshape(&[1, 24, 1]).map(|l| l.is_contiguous(4)), Some(true));
        let t = x.transpose(&[1, 0, 2]);
        assert_eq!(t.reshape(&[6, 4]), None);
        assert_eq!(
            t.reshape(&[3, 2, 2, 2]).map(|l| l.strides().to_vec()),
            Some(vec![16, 48, 8, 4])
        );
        let reversed = x.slice(0, Slice::new(None, None, -1).resolve(2).expect("step"));
        assert_eq!(reversed.reshape(&[2, 12]).map(|l| l.strides().to_vec()), Some(vec![-48, 4]));
        assert_eq!(reversed.reshape(&[24]), None);
        assert_eq!(layout(&[]).reshape(&[1, 1]).map(|l| l.numel()), Some(1));
        assert_eq!(layout(&[2, 0]).reshape(&[0, 5]).map(|l| l.numel()), Some(0));
    }

    #[test]
    fn extent_covers_negative_strides() {
        let x = layout(&[4]).slice(0, Slice::new(None, None, -1).resolve(4).expect("step"));
        assert_eq!((x.offset(), x.extent(4)), (12, Some(0..16)));
        let before = Layout::strided(Shape::from_slice(&[2]), Strides::from_slice(&[-4]), 0);
        assert_eq!(before.extent(4), None);
    }

    #[test]
    fn overlap_is_seen() {
        let x = layout(&[3, 4]);
        assert!(!x.overlaps_itself(4));
        assert!(!x.transpose(&[1, 0]).overlaps_itself(4));
        assert!(!x.diagonal(1, 0, 1).overlaps_itself(4));
        assert!(layout(&[1, 4]).broadcast_to(&[3, 4]).is_some_and(|l| l.overlaps_itself(4)));
        let windows = Layout::strided(Shape::from_slice(&[3, 2]), Strides::from_slice(&[4, 4]), 0);
        assert!(windows.overlaps_itself(4));
    }

    #[test]
    fn diagonals_end_at_the_edges() {
        for (rows, cols) in [(0, 3), (1, 1), (3, 5), (5, 3)] {
            for offset in -7..=7 {
                let naive = (0..rows as i64).filter(|r| (0..cols as i64).contains(&(r + offset)));
                assert_eq!(diagonal_len(rows, cols, offset), naive.count());
            }
            assert_eq!(diagonal_len(rows, cols, i64::MIN), 0);
            assert_eq!(diagonal_len(rows, cols, i64::MAX), 0);
        }
    }
}
