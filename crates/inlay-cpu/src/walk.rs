//! Iterates over N layouts of one shape together, in runs of equally spaced elements.
//!
//! Neighbouring dimensions that are contiguous in all of the layouts are merged, so contiguous
//! tensors of any rank are a single run.
//!
//! The `unsafe` code of the kernels relies on these guarantees. The constructors panic unless the
//! layouts have one shape. Every offset of a run is that of an element of its layout, if the range
//! of positions ends at or below [`Walk::len`]. Disjoint ranges of positions have disjoint
//! elements.

use std::ops::Range;

use inlay_core::Layout;
use smallvec::SmallVec;

use crate::threads;
use crate::tuning::FEW;

/// An iteration over N layouts, with merged dimensions.
pub(crate) struct Walk<const N: usize> {
    dims: SmallVec<[Dimension<N>; 6]>,
    /// The byte offset of the first element from each layout's origin. It is not 0 if a dimension
    /// is walked from its end.
    start: [isize; N],
    len: usize,
}

/// A dimension: its size, and its stride in bytes in each layout.
#[derive(Clone, Copy)]
pub(crate) struct Dimension<const N: usize> {
    pub(crate) size: usize,
    pub(crate) strides: [isize; N],
}

/// A run of equally spaced elements, with a stride for each layout.
#[derive(Clone, Copy)]
pub(crate) struct Run<const N: usize> {
    /// The number of the first element in the order of the walk.
    pub(crate) position: usize,
    /// The byte offset of the first element from each layout's origin.
    pub(crate) offsets: [isize; N],
    /// The distance in bytes from one element to the next in each layout.
    pub(crate) strides: [isize; N],
    /// The number of elements.
    pub(crate) len: usize,
}

impl<const N: usize> Run<N> {
    /// Returns all elements as one run in row-major order, without a walk. Returns `None` if there
    /// are more elements than [`FEW`] or none at all, or if a layout is neither contiguous nor a
    /// single element that is repeated. Panics unless the layouts have one shape. (A whole
    /// `masked_select` of 8 x 8 `f32` takes 500 ns instead of 620.)
    #[inline]
    pub(crate) fn of_few(layouts: [&Layout; N], sizes: [usize; N]) -> Option<Self> {
        let len = layouts[0].numel();
        // Without elements the origin may not be a valid address.
        if len == 0 || len > FEW.get() {
            return None;
        }
        let mut strides = [0; N];
        for n in 0..N {
            let layout = layouts[n];
            assert!(layout.shape() == layouts[0].shape(), "layouts of one shape");
            if layout.is_contiguous(sizes[n]) {
                strides[n] = sizes[n] as isize;
            } else if layout.strides().iter().any(|&stride| stride != 0) {
                return None;
            }
        }
        Some(Run { position: 0, offsets: [0; N], strides, len })
    }
}

impl<const N: usize> Walk<N> {
    /// Returns a walk in row-major order. Panics unless the layouts have one shape.
    pub(crate) fn new(layouts: [&Layout; N]) -> Self {
        let mut walk = Walk::over(layouts, None);
        walk.merge();
        walk
    }

    /// Returns a walk by ascending addresses of the first layout, for kernels whose result does not
    /// depend on the order. Panics unless the layouts have one shape.
    pub(crate) fn in_memory_order(layouts: [&Layout; N]) -> Self {
        let mut walk = Walk::over(layouts, None);
        walk.sort();
        walk.merge();
        walk
    }

    /// [`Walk::in_memory_order`] over the elements at position 0 of `axis`. The layouts may have
    /// different sizes of `axis`; all other sizes must agree.
    pub(crate) fn of_rows(layouts: [&Layout; N], axis: usize) -> Self {
        let mut walk = Walk::over(layouts, Some(axis));
        walk.sort();
        walk.merge();
        walk
    }

    // A walk is large. These functions change it in place and are inlined, so that it is not moved.

    /// Returns a walk over all dimensions but `gone`, in the order of the layouts, not merged yet.
    #[inline(always)]
    fn over(layouts: [&Layout; N], gone: Option<usize>) -> Self {
        let mut walk = Walk { dims: SmallVec::new(), start: [0; N], len: 1 };
        let [first, others @ ..] = &layouts[..] else { unreachable!("N is at least 1") };
        assert!(others.iter().all(|other| other.rank() == first.rank()), "layouts of one rank");
        for axis in (0..first.rank()).filter(|axis| Some(*axis) != gone) {
            let size = first.shape()[axis];
            assert!(others.iter().all(|other| other.shape()[axis] == size), "layouts of one shape");
            let strides = layouts.map(|layout| layout.strides()[axis]);
            walk.dims.push(Dimension { size, strides });
        }
        walk
    }

    /// Orders the walk by ascending addresses of the first layout: reverses dimensions with a
    /// negative stride, and sorts dimensions by stride.
    #[inline(always)]
    fn sort(&mut self) {
        for dim in self.dims.iter_mut().filter(|dim| dim.strides[0] < 0 && dim.size > 0) {
            add(&mut self.start, &dim.strides, dim.size as isize - 1);
            dim.strides = dim.strides.map(isize::wrapping_neg);
        }
        let key = |dim: &Dimension<N>| std::cmp::Reverse(dim.strides[0].unsigned_abs());
        if !self.dims.is_sorted_by_key(key) {
            self.dims.sort_by_key(key);
        }
    }

    /// Counts the elements, and merges neighbouring dimensions that are contiguous in all layouts.
    #[inline(always)]
    fn merge(&mut self) {
        self.len = self.dims.iter().fold(1usize, |n, dim| n.saturating_mul(dim.size));
        let mut merged = 0;
        for k in 0..self.dims.len() {
            let dim = self.dims[k];
            if dim.size == 1 {
                continue;
            }
            match self.dims[..merged].last_mut() {
                Some(outer) if follows(outer, &dim) => {
                    outer.size = outer.size.saturating_mul(dim.size);
                    outer.strides = dim.strides;
                }
                _ => {
                    self.dims[merged] = dim;
                    merged += 1;
                }
            }
        }
        self.dims.truncate(merged);
        if merged == 0 {
            self.dims.push(Dimension { size: 1, strides: [0; N] });
        }
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the length of a complete run: the size of the innermost dimension.
    pub(crate) fn run_len(&self) -> usize {
        self.dims.last().map_or(1, |dim| dim.size)
    }

    /// Returns the merged dimensions. Runs are along the last one.
    pub(crate) fn dims(&self) -> &[Dimension<N>] {
        &self.dims
    }

    /// Returns a walk over all dimensions but those at `gone`, at position 0 of these.
    pub(crate) fn without(&self, gone: &[usize]) -> Self {
        let kept = self.dims.iter().enumerate().filter(|(k, _)| !gone.contains(k));
        let dims = kept.map(|(_, dim)| *dim).collect();
        let mut walk = Walk { dims, start: self.start, len: 1 };
        walk.merge();
        walk
    }

    /// Returns the strides of runs: those of the innermost dimension.
    pub(crate) fn run_strides(&self) -> [isize; N] {
        self.dims.last().map_or([0; N], |dim| dim.strides)
    }

    /// Returns how many elements begin before the byte `offset` in the first layout. The walk must
    /// be by ascending addresses of that layout, and no two of its elements may overlap.
    pub(crate) fn below(&self, offset: isize) -> usize {
        let Some(mut rest) = offset.checked_sub(self.start[0]).filter(|&rest| rest > 0) else {
            return 0;
        };
        let mut count = 0;
        let mut each = self.len;
        for (k, dim) in self.dims.iter().enumerate() {
            each /= dim.size.max(1);
            let stride = dim.strides[0].max(1);
            // In the innermost dimension, count the elements that begin before `offset`. In an
            // outer one, count the positions that lie completely before it.
            let last = k + 1 == self.dims.len();
            let past = if last { (rest - 1) / stride + 1 } else { rest / stride };
            if past >= dim.size as isize {
                return count + dim.size * each;
            }
            count += past as usize * each;
            rest -= past * stride;
            if rest <= 0 {
                return count;
            }
        }
        count
    }

    /// Calls `visit` with each run of the elements at the positions of `range`, in order.
    #[inline]
    pub(crate) fn runs(&self, range: Range<usize>, mut visit: impl FnMut(Run<N>)) {
        self.planes(range, &mut |plane| plane.each_run(&mut visit));
    }

    /// Calls `visit` with all runs. Uses several threads if there is enough work for them, at
    /// `cost` bytes per element.
    #[inline]
    pub(crate) fn parallel(&self, cost: usize, visit: impl Fn(Run<N>) + Sync) {
        self.parallel_planes(cost, &|plane| plane.each_run(&visit));
    }

    // The functions below are compiled once for each N, and not for each visitor. A visitor is
    // compiled with the loop over the runs of a plane, which is short.

    fn parallel_planes(&self, cost: usize, visit: &(dyn Fn(&Plane<N>) + Sync)) {
        threads::split(self.len, cost, |range| self.planes(range, &mut |plane| visit(plane)));
    }

    /// Calls `visit` with each plane of the elements at the positions of `range`, in order.
    fn planes(&self, range: Range<usize>, visit: &mut dyn FnMut(&Plane<N>)) {
        if range.is_empty() || self.len == 0 {
            return;
        }
        let Some((inner, outer)) = self.dims.split_last() else { return };
        if outer.is_empty() {
            // One run, without the divisions below.
            let (mut offsets, strides) = (self.start, inner.strides);
            add(&mut offsets, &strides, range.start as isize);
            let run = Run { position: range.start, offsets, strides, len: range.len() };
            return visit(&Plane { run, count: 1, step: [0; N] });
        }
        let single = Dimension { size: 1, strides: [0; N] };
        let (across, outer) = outer.split_last().unwrap_or((&single, outer));
        let mut index = match outer.len() {
            // Up to six dimensions are set to 0 without a loop.
            len @ 0..=6 => SmallVec::<[usize; 6]>::from_buf_and_len([0; 6], len),
            len => SmallVec::from_elem(0, len),
        };
        // The beginning of the current plane, and of the current run.
        let mut begin = self.start;
        let row = range.start / inner.size;
        let mut rest = row / across.size;
        for (at, dim) in index.iter_mut().zip(outer).rev() {
            *at = rest % dim.size;
            rest /= dim.size;
            add(&mut begin, &dim.strides, *at as isize);
        }
        let mut offsets = begin;
        add(&mut offsets, &across.strides, (row % across.size) as isize);
        let mut left = across.size - row % across.size;
        let (mut position, mut column) = (range.start, range.start % inner.size);
        loop {
            // Only the first and the last run can be incomplete. Such a run is a plane of its own.
            let len = (inner.size - column).min(range.end - position);
            let whole = len == inner.size;
            let count = if whole { left.min((range.end - position) / len) } else { 1 };
            let mut first = offsets;
            add(&mut first, &inner.strides, column as isize);
            let run = Run { position, offsets: first, strides: inner.strides, len };
            visit(&Plane { run, count, step: across.strides });
            position += len * count;
            if position >= range.end {
                return;
            }
            column = 0;
            left -= count;
            if left > 0 {
                add(&mut offsets, &across.strides, count as isize);
                continue;
            }
            for (at, dim) in index.iter_mut().zip(outer).rev() {
                *at += 1;
                add(&mut begin, &dim.strides, 1);
                if *at < dim.size {
                    break;
                }
                add(&mut begin, &dim.strides, -(dim.size as isize));
                *at = 0;
            }
            (offsets, left) = (begin, across.size);
        }
    }
}

/// Calls `visit` with all runs of layouts of one shape, by ascending addresses of the first one.
/// `sizes` are those of their elements. Uses several threads if there is enough work for them. A few
/// contiguous elements are one run, without a walk. (`x + y` of 8 x 8 `f32` takes 300 ns, and 360 ns
/// with a walk.)
#[inline]
pub(crate) fn each_run<const N: usize>(
    layouts: [&Layout; N],
    sizes: [usize; N],
    visit: impl Fn(Run<N>) + Sync,
) {
    match Run::of_few(layouts, sizes) {
        Some(run) => visit(run),
        None => Walk::in_memory_order(layouts).parallel(sizes.iter().sum(), visit),
    }
}

/// Equally spaced runs of one length: elements of the two innermost dimensions.
struct Plane<const N: usize> {
    run: Run<N>,
    /// The number of runs.
    count: usize,
    /// The distance in bytes from one run to the next in each layout.
    step: [isize; N],
}

impl<const N: usize> Plane<N> {
    #[inline(always)]
    fn each_run(&self, mut visit: impl FnMut(Run<N>)) {
        let Plane { mut run, count, step } = *self;
        for _ in 0..count {
            visit(run);
            run.position += run.len;
            add(&mut run.offsets, &step, 1);
        }
    }
}

/// Returns whether the two dimensions are contiguous in every layout: the stride of `outer` is the
/// size times the stride of `inner`.
fn follows<const N: usize>(outer: &Dimension<N>, inner: &Dimension<N>) -> bool {
    outer.strides.iter().zip(&inner.strides).all(|(&outer, &step)| {
        isize::try_from(inner.size).ok().and_then(|size| step.checked_mul(size)) == Some(outer)
    })
}

#[inline(always)]
fn add<const N: usize>(offsets: &mut [isize; N], strides: &[isize; N], times: isize) {
    for (offset, stride) in offsets.iter_mut().zip(strides) {
        *offset = offset.wrapping_add(stride.wrapping_mul(times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_without_gaps_are_one_run() {
        let layout = Layout::contiguous("test", &[2, 3, 4], 4).expect("small");
        let mut lens = vec![];
        Walk::new([&layout, &layout]).runs(0..24, |run| lens.push(run.len));
        assert_eq!(lens, [24]);
    }

    #[test]
    fn below_counts_what_a_loop_counts() {
        let x = Layout::contiguous("test", &[4, 5, 6], 4).expect("small");
        let slice = |start, step, len| inlay_core::ResolvedSlice { start, step, len };
        for layout in [
            x.clone(),
            x.transpose(&[2, 0, 1]),
            x.slice(1, slice(1, 2, 2)),
            x.slice(2, slice(5, -2, 3)).slice(0, slice(3, -1, 3)),
            x.diagonal(1, 1, 2),
            x.diagonal(0, 0, 2).slice(0, slice(2, 1, 1)),
        ] {
            let walk = Walk::in_memory_order([&layout]);
            let mut offsets = vec![];
            walk.runs(0..walk.len(), |run| {
                let at = |k| run.offsets[0] + k as isize * run.strides[0];
                offsets.extend((0..run.len).map(at));
            });
            assert!(offsets.is_sorted());
            for offset in -500..500 {
                let expected = offsets.iter().filter(|&&at| at < offset).count();
                assert_eq!(walk.below(offset), expected, "{layout:?} {offset}");
            }
        }
    }

    #[test]
    fn parts_of_a_walk_make_the_whole() {
        let layout = Layout::contiguous("test", &[2, 3, 4], 4).expect("small");
        let layout = layout.transpose(&[1, 2, 0]);
        let walk = Walk::new([&layout]);
        let elements = |ranges: &[Range<usize>]| {
            let mut out = vec![];
            for range in ranges {
                walk.runs(range.clone(), |run| {
                    let at = |k| run.offsets[0] + k as isize * run.strides[0];
                    out.extend((0..run.len).map(at));
                });
            }
            out
        };
        let whole = elements(std::slice::from_ref(&(0..24)));
        assert_eq!(whole.len(), 24);
        for cut in 0..=24 {
            assert_eq!(elements(&[0..cut, cut..24]), whole);
        }
    }
}
