//! Whole rows at the positions of a 1-D index: read them, or write and reduce into them.
//!
//! A row is what remains of a tensor when one axis is fixed; it need not be contiguous.

use std::ops::Range;

use inlay_core::{Combine, Layout, Result};

use super::copy::{copy, move_run};
use super::groups::Groups;
use super::positions::Positions;
use super::reducer::{Rows, dispatch_reduce, reduce_run};
use crate::number::dispatch_width;
use crate::walk::{Run, Walk};
use crate::{Dst, Src, threads};

/// Bytes of a row that are handled at a time: longer rows are split, so that threads can share one
/// row and its accumulated part stays in the cache.
const BLOCK: usize = 16 << 10;

/// `dst[i] = src[index[i]]` along `axis`.
pub fn gather_rows(dst: Dst<'_>, src: Src<'_>, axis: usize, index: &Positions) {
    dst.expect_apart(&src);
    let size = dst.same_size(&src);
    let positions = index.values();
    let (to_axis, from_axis) = (dst.layout().strides()[axis], src.layout().strides()[axis]);
    let rows =
        Walk::in_memory_order([&dst.layout().without_axis(axis), &src.layout().without_axis(axis)]);
    dispatch_width!(size, W => each_row(&rows, positions.len(), size, 2 * size, |run, i| {
        let to = run.offsets[0] + i as isize * to_axis;
        let from = run.offsets[1] + positions[i] as isize * from_axis;
        // SAFETY: the run lies inside of both rows, `i` and the position inside of both axes, and
        // the views lie apart.
        unsafe {
            move_run::<W>(
                dst.origin().offset(to), run.strides[0],
                src.origin().offset(from), run.strides[1], run.len,
            );
        }
    }));
}

/// `dst[index[i]] (combine)= updates[i]` along `axis`, for i in order. Where `base` is given, `dst`
/// is fresh and takes its other rows, and its old values, from there.
pub fn scatter_rows(
    dst: Dst<'_>,
    base: Option<Src<'_>>,
    axis: usize,
    index: &Positions,
    updates: Src<'_>,
    combine: Combine,
) -> Result<()> {
    dst.expect_apart(&updates);
    let size = dst.same_size(&updates);
    let positions = index.values();
    let places = dst.layout().shape()[axis];
    let mut groups = Groups::with_capacity(positions.len(), places, combine == Combine::Assign)?;
    groups.fill(positions.len(), |entry| positions[entry]);

    let base = match base {
        Some(base) if !groups.is_dense() => {
            copy(dst, base);
            None
        }
        base => base,
    };
    let old = base.unwrap_or(dst.as_src());
    let row = |layout: &Layout| layout.without_axis(axis);
    let rows =
        Walk::in_memory_order([&row(dst.layout()), &row(old.layout()), &row(updates.layout())]);
    let strides = [dst.layout(), old.layout(), updates.layout()].map(|l| l.strides()[axis]);
    let cost = 2 * size + size * positions.len() / groups.len().max(1);

    let at = move |run: &Run<3>, place: usize| {
        let by = |k: usize| run.offsets[k] + place as isize * strides[k];
        // SAFETY: the run lies inside of the rows, the place inside of the axis.
        unsafe { (dst.origin().offset(by(0)), old.origin().offset(by(1))) }
    };
    let keep = |run: &Run<3>, place: usize| {
        if base.is_some() {
            let (to, from) = at(run, place);
            // SAFETY: as above, and `base`, which `old` is here, lies apart from `dst`.
            dispatch_width!(size, W => unsafe {
                move_run::<W>(to, run.strides[0], from, run.strides[1], run.len);
            });
        }
    };
    match combine {
        Combine::Assign => {
            dispatch_width!(size, W => each_row(&rows, groups.len(), size, cost, |run, group| {
                let (place, entries) = groups.get(group);
                let Some(&entry) = entries.last() else { return keep(&run, place) };
                let from = run.offsets[2] + entry as isize * strides[2];
                let (to, _) = at(&run, place);
                // SAFETY: as above, the entry lies inside of its axis, and the views lie apart.
                unsafe {
                    move_run::<W>(
                        to, run.strides[0],
                        updates.origin().offset(from), run.strides[2], run.len,
                    );
                }
            }));
        }
        Combine::Reduce { reduce, include_self } => {
            dispatch_reduce!(reduce, dst.dtype(), (T, R) => {
                each_row(&rows, groups.len(), size, cost, |run, group| {
                    let (place, entries) = groups.get(group);
                    if entries.is_empty() {
                        return keep(&run, place);
                    }
                    let (to, own) = at(&run, place);
                    // SAFETY: as above; `own` may be `to` itself.
                    unsafe {
                        let from = Rows {
                            origin: updates.origin().offset(run.offsets[2]),
                            row_stride: strides[2],
                            stride: run.strides[2],
                        };
                        let own = include_self.then_some((own, run.strides[1]));
                        reduce_run::<T, R>((to, run.strides[0]), own, from, entries, run.len);
                    }
                });
            });
        }
    }
    Ok(())
}

/// Calls `visit` with every part of a row and every one of `count` numbers, on several threads when
/// `cost` bytes an element make that worth it.
fn each_row<const N: usize>(
    rows: &Walk<N>,
    count: usize,
    size: usize,
    cost: usize,
    visit: impl Fn(Run<N>, usize) + Sync,
) {
    if rows.len() == 0 || count == 0 {
        return;
    }
    let run_len = rows.run_len();
    let block = run_len.min((BLOCK / size).max(1));
    let blocks = run_len.div_ceil(block);
    // Parts are runs of rows, then blocks of a run, then numbers: the last change fastest.
    let parts = (rows.len() / run_len) * blocks;
    threads::split(parts.saturating_mul(count), cost * block, |items: Range<usize>| {
        let mut item = items.start;
        while item < items.end {
            let (part, first) = (item / count, item % count);
            let last = (first + (items.end - item)).min(count);
            let start = (part / blocks) * run_len + (part % blocks) * block;
            let end = (start + block).min((part / blocks + 1) * run_len);
            rows.runs(start..end, |run| (first..last).for_each(|number| visit(run, number)));
            item += last - first;
        }
    });
}
