//! Single elements at the positions of an index of the tensor's own rank.
//!
//! A lane is the elements that differ only in their place on the axis. Lanes are independent, so
//! threads take lanes, and each lane is worked in index order.

use inlay_core::{Combine, Layout, Result};

use super::copy::copy;
use super::groups::Groups;
use super::positions::{Positions, Shared};
use super::reducer::{Rows, dispatch_reduce, reduce_run};
use crate::number::dispatch_width;
use crate::walk::{Run, Walk};
use crate::{Dst, Src, threads};

/// Lanes that are worked side by side, so that neighbours in memory are met together.
const LANES: usize = 64;

/// `dst[.., j, ..] = src[.., index[.., j, ..], ..]` along `axis`. `index_layout` stretches the
/// positions to the shape of `dst`; off the axis `src` has that shape too.
pub fn gather_elements(
    dst: Dst<'_>,
    src: Src<'_>,
    axis: usize,
    index: &Positions,
    index_layout: &Layout,
) {
    dst.expect_apart(&src);
    let size = dst.same_size(&src);
    let index = Entries::new(index, index_layout);
    let step = src.layout().strides()[axis];
    let lanes = hold_axis(src.layout(), axis, dst.layout().shape()[axis]);
    let walk = Walk::in_memory_order([dst.layout(), index_layout, &lanes]);
    dispatch_width!(size, W => walk.parallel(3 * size + 8, |run| {
        for k in 0..run.len as isize {
            let [to, entry, from] = at(&run, k);
            // SAFETY: the walk stays inside of all layouts, the position inside of the axis.
            unsafe {
                let from = from + index.at(entry) as isize * step;
                let word = src.origin().offset(from).cast::<W>().read_unaligned();
                dst.origin().offset(to).cast::<W>().write_unaligned(word);
            }
        }
    }));
}

/// `dst[.., index[.., j, ..], ..] (combine)= values[.., j, ..]` along `axis`, for j in order.
/// `index_layout` stretches the positions to the shape of `values`; off the axis `dst` may be
/// larger. Where `base` is given, `dst` is fresh and starts as its copy.
pub fn scatter_elements(
    dst: Dst<'_>,
    base: Option<Src<'_>>,
    axis: usize,
    index: &Positions,
    index_layout: &Layout,
    values: Src<'_>,
    combine: Combine,
) -> Result<()> {
    dst.expect_apart(&values);
    let size = dst.same_size(&values);
    let places = dst.layout().shape()[axis];
    let count = index_layout.shape()[axis];
    let index = Entries::new(index, index_layout);
    let corner = corner(dst.layout(), index_layout.shape(), axis);
    let row = |layout: &Layout| layout.without_axis(axis);
    let lanes = Walk::in_memory_order([&row(&corner), &row(index_layout), &row(values.layout())]);
    let strides =
        [dst.layout(), index_layout, values.layout()].map(|layout| layout.strides()[axis]);
    let cost = count.saturating_mul(2 * size + 8);

    match combine {
        Combine::Assign => {
            if let Some(base) = base {
                copy(dst, base);
            }
            dispatch_width!(size, W => lanes.parallel(cost, |run| {
                each_block(&run, |block| for j in 0..count as isize {
                    for lane in 0..block.len as isize {
                        let [to, entry, from] = at(&block, lane);
                        // SAFETY: lane and j lie inside of all layouts, the position inside of
                        // the axis, and no other thread has this lane.
                        unsafe {
                            let place = index.at(entry + j * strides[1]) as isize;
                            let from = values.origin().offset(from + j * strides[2]);
                            let word = from.cast::<W>().read_unaligned();
                            let to = dst.origin().offset(to + place * strides[0]);
                            to.cast::<W>().write_unaligned(word);
                        }
                    }
                });
            }));
        }
        Combine::Reduce { reduce, include_self } => {
            let parts = threads::parts(lanes.len(), cost);
            let mut spaces = Vec::new();
            for _ in 0..parts {
                spaces.push(Groups::with_capacity(count, places, false)?);
            }
            if let Some(base) = base {
                copy(dst, base);
            }
            let spaces = Shared(spaces.as_mut_ptr());
            dispatch_reduce!(reduce, dst.dtype(), (T, R) => threads::run(parts, |part| {
                // SAFETY: each part has a workspace of its own.
                let groups = unsafe { &mut *spaces.get().add(part) };
                let range = threads::part_of(lanes.len(), parts, part);
                lanes.runs(range, |run| for lane in 0..run.len as isize {
                    let [to, entry, from] = at(&run, lane);
                    // SAFETY: lane and j lie inside of all layouts.
                    let named = |j: usize| unsafe { index.at(entry + j as isize * strides[1]) };
                    groups.fill(count, named);
                    for group in 0..groups.len() {
                        let (place, members) = (groups.place(group, named), groups.members(group));
                        if members.len() == 0 {
                            continue;
                        }
                        // SAFETY: the place and the entries lie inside of their axes, and no
                        // other thread has this lane.
                        unsafe {
                            let to = dst.origin().offset(to + place as isize * strides[0]);
                            let from = Rows {
                                origin: values.origin().offset(from),
                                row_stride: strides[2],
                                stride: 0,
                            };
                            let own = include_self.then_some((to.cast_const(), 0));
                            reduce_run::<T, R>((to, 0), own, from, members, 1);
                        }
                    }
                });
            }));
        }
    }
    Ok(())
}

/// Positions reached by byte offset.
#[derive(Clone, Copy)]
struct Entries<'a>(&'a [i64]);

impl<'a> Entries<'a> {
    fn new(index: &'a Positions, layout: &Layout) -> Self {
        let inside = layout.extent(size_of::<i64>());
        let inside = inside.is_some_and(|range| range.end <= size_of_val(index.values()));
        assert!(inside || layout.numel() == 0, "the index layout stays inside of the index");
        Entries(index.values())
    }

    /// # Safety
    /// The offset is that of an element of the layout given to `new`.
    unsafe fn at(self, offset: isize) -> usize {
        // SAFETY: `new` has shown that every element of the layout is inside of the slice.
        unsafe { self.0.as_ptr().byte_offset(offset).read() as usize }
    }
}

fn at<const N: usize>(run: &Run<N>, k: isize) -> [isize; N] {
    std::array::from_fn(|n| run.offsets[n] + k * run.strides[n])
}

/// Splits a run of lanes into blocks of at most [`LANES`].
fn each_block(run: &Run<3>, mut visit: impl FnMut(Run<3>)) {
    for start in (0..run.len).step_by(LANES) {
        let len = (run.len - start).min(LANES);
        visit(Run { offsets: at(run, start as isize), len, ..*run });
    }
}

/// The layout with `axis` held at its position 0 and repeated `len` times.
fn hold_axis(layout: &Layout, axis: usize, len: usize) -> Layout {
    let (mut shape, mut strides) = (layout.shape().to_vec(), layout.strides().to_vec());
    (shape[axis], strides[axis]) = (len, 0);
    Layout::strided(shape.into(), strides.into(), layout.offset())
}

/// The part of `layout` that has `shape` off the axis, from index 0 on.
fn corner(layout: &Layout, shape: &[usize], axis: usize) -> Layout {
    let mut sizes = shape.to_vec();
    sizes[axis] = layout.shape()[axis];
    assert!(sizes.iter().zip(layout.shape()).all(|(part, whole)| part <= whole), "a part of it");
    Layout::strided(sizes.into(), layout.strides().into(), layout.offset())
}
