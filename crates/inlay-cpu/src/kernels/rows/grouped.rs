//! Rows written place by place: the entries of a place are brought together first.
//!
//! Every place is accumulated in registers and written once.

use std::ops::Range;

use inlay_core::{Combine, Result};

use super::near::Near;
use super::{Call, ahead};
use crate::kernels::copy::{copy, move_run};
use crate::kernels::groups::Groups;
use crate::kernels::positions::Positions;
use crate::kernels::reducer::{Rows, dispatch_reduce, prefetch_far, reduce_run};
use crate::number::dispatch_width;
use crate::threads;
use crate::walk::{Run, Walk};

/// Bytes of a row that are handled at a time: longer rows are split, so that threads can share one
/// row and its accumulated part stays in the cache.
const BLOCK: usize = 16 << 10;

/// Bytes of a line of the cache: rows are not split within.
pub(super) const LINE: usize = 64;

pub(super) fn scatter(call: &Call<'_>, index: &Positions) -> Result<()> {
    let (entries, places) = (index.values().len(), call.dst.layout().shape()[call.axis]);
    let (last, rows) = (call.combine == Combine::Assign, call.updates.layout().shape()[call.axis]);
    let mut groups = Groups::of_numbers(entries, places, last, rows)?;
    groups.fill_from(index, |entry| match call.selected {
        Some(selected) => selected[entry] as usize,
        None => entry,
    });
    by_place(call, index, &groups);
    Ok(())
}

/// Writes all places.
fn by_place(call: &Call<'_>, index: &Positions, groups: &Groups) {
    let Call { dst, base, updates, combine, .. } = *call;
    let size = dst.same_size(&updates);
    let entries = index.values().len();
    let base = match base {
        Some(base) if !groups.is_dense() => {
            copy(dst, base);
            None
        }
        base => base,
    };
    let call = Call { base, ..*call };
    let (rows, steps) = (call.rows(), call.steps());
    let old = base.unwrap_or(dst.as_src());
    let cost = 2 * size + size * entries / groups.len().max(1);
    let cut = |part: usize, parts: usize| groups.cut(part, parts);
    // Threads can't share a place, but its columns.
    let columns = if groups.largest() > entries / threads::num_threads() {
        threads::num_threads()
    } else {
        1
    };

    let named = |entry: usize| index.values()[entry] as usize;
    let at = move |run: &Run<3>, place: usize| {
        let by = |k: usize| run.offsets[k] + place as isize * steps[k];
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
    let ahead = ahead(&rows, 2, size);
    let last = groups.len().saturating_sub(1);
    match combine {
        Combine::Assign => {
            dispatch_width!(size, W => each_row(&rows, &cut, size, cost, columns, |run, group| {
                let place = groups.place(group, named);
                let Some(entry) = groups.last(group) else { return keep(&run, place) };
                let from = |entry: usize| run.offsets[2] + entry as isize * steps[2];
                if let Some(ahead) = ahead
                    && let Some(next) = groups.last((group + ahead).min(last))
                {
                    prefetch_far(updates.origin().wrapping_offset(from(next)), run.len * size);
                }
                let (to, _) = at(&run, place);
                // SAFETY: as above, the entry lies inside of its axis, and the views lie apart.
                unsafe {
                    let from = updates.origin().offset(from(entry));
                    move_run::<W>(to, run.strides[0], from, run.strides[2], run.len);
                }
            }));
        }
        Combine::Reduce { reduce, include_self } => {
            dispatch_reduce!(reduce, dst.dtype(), (T, R) => {
                let near = Near::new(&call, groups, index.values(), include_self);
                each_part(&rows, &cut, size, cost, columns, |run, part| {
                    if let Some(near) = &near && near.fits::<T, R>(&run) {
                        // SAFETY: the run lies inside of the rows, and groups and columns are this
                        // call's alone.
                        unsafe { near.reduce::<T, R>(&run, part, |place| keep(&run, place)) };
                        return;
                    }
                    for group in part {
                        let (place, members) = (groups.place(group, named), groups.members(group));
                        if members.len() == 0 {
                            keep(&run, place);
                            continue;
                        }
                        let (to, own) = at(&run, place);
                        // SAFETY: as above; `own` may be `to` itself.
                        unsafe {
                            let from = Rows {
                                origin: updates.origin().offset(run.offsets[2]),
                                row_stride: steps[2],
                                stride: run.strides[2],
                            };
                            let own = include_self.then_some((own, run.strides[1]));
                            reduce_run::<T, R>((to, run.strides[0]), own, from, members, run.len);
                        }
                    }
                });
            });
        }
    }
}

/// Cuts `0..count` into equal parts.
pub(super) fn evenly(count: usize) -> impl Fn(usize, usize) -> usize {
    move |part, parts| {
        if part == parts { count } else { threads::part_of(count, parts, part).start }
    }
}

/// Calls `visit` with every part of a row and every number, on several threads when `cost` bytes an
/// element make that worth it. `cut(k, n)` is where the k-th of n parts of the numbers begins;
/// rows are split into `columns` or more.
pub(super) fn each_row<const N: usize>(
    rows: &Walk<N>,
    cut: &(impl Fn(usize, usize) -> usize + Sync),
    size: usize,
    cost: usize,
    columns: usize,
    visit: impl Fn(Run<N>, usize) + Sync,
) {
    each_part(rows, cut, size, cost, columns, |run, part| {
        part.for_each(|number| visit(run, number))
    });
}

/// [`each_row`], but `visit` is called with ranges of numbers.
fn each_part<const N: usize>(
    rows: &Walk<N>,
    cut: &(impl Fn(usize, usize) -> usize + Sync),
    size: usize,
    cost: usize,
    columns: usize,
    visit: impl Fn(Run<N>, Range<usize>) + Sync,
) {
    let count = cut(1, 1);
    if rows.len() == 0 || count == 0 {
        return;
    }
    let run_len = rows.run_len();
    let column = run_len.div_ceil(columns).next_multiple_of((LINE / size).max(1));
    let block = run_len.min((BLOCK / size).max(1)).min(column);
    let blocks = run_len.div_ceil(block);
    let runs = (rows.len() / run_len) * blocks;
    // Items are runs of rows, then blocks of a run, then parts of the numbers.
    let wanted = threads::parts(rows.len().saturating_mul(count), cost);
    let parts = wanted.div_ceil(runs).min(count);
    let item = |item: usize| {
        let (run, part) = (item / parts, item % parts);
        let numbers: Range<usize> = cut(part, parts)..cut(part + 1, parts);
        let start = (run / blocks) * run_len + (run % blocks) * block;
        let end = (start + block).min((run / blocks + 1) * run_len);
        rows.runs(start..end, |run| visit(run, numbers.clone()));
    };
    let items = runs * parts;
    if wanted <= 1 {
        return (0..items).for_each(item);
    }
    // Many short items are handed out together.
    let bundles = items.min(wanted);
    threads::run(bundles, |bundle| threads::part_of(items, bundles, bundle).for_each(&item));
}
