//! Writes rows place by place. The entries are grouped by place first; then each place is
//! accumulated in registers and written once.

use std::ops::Range;

use inlay_core::{Combine, Result};

use super::near::{Near, NearReduction};
use super::{Index, RowScatter, ahead};
use crate::kernels::copy::{copy_to, move_run};
use crate::kernels::groups::Groups;
use crate::kernels::listing::IndexReader;
use crate::kernels::reducer::{ReduceRun, Rows, dispatch_reduce, prefetch_far, reduce_run};
use crate::number::dispatch_width;
use crate::threads;
use crate::walk::{Run, Walk};

/// The most bytes of a row that are processed at a time. Longer rows are split, so that threads can
/// share a row and the accumulated values stay in the cache.
const BLOCK: usize = 16 << 10;

/// The bytes of a cache line. Rows are split into multiples of it.
pub(super) const LINE: usize = 64;

pub(super) fn scatter(call: &RowScatter<'_>, index: Index<'_>) -> Result<()> {
    let places = call.dst.layout().shape()[call.axis];
    let (last, rows) = (call.combine == Combine::Assign, call.updates.layout().shape()[call.axis]);
    let number = |entry: usize| match call.selected {
        Some(selected) => selected[entry] as usize,
        None => entry,
    };
    let group = |index: &IndexReader<'_>| Groups::of(index, places, last, rows, number);
    let groups = match group(&IndexReader::Raw(index.values))? {
        Some(groups) => groups,
        // An entry is out of range, or one thread groups them.
        None => {
            let positions = index.positions(call.axis, places)?;
            let groups = group(&IndexReader::Checked(&positions))?;
            groups.unwrap_or_else(|| unreachable!("positions were checked"))
        }
    };
    by_place(call, index.values.layout().numel(), &groups);
    Ok(())
}

/// Writes all places from their grouped entries.
fn by_place(call: &RowScatter<'_>, entries: usize, groups: &Groups) {
    let RowScatter { dst, base, updates, combine, .. } = *call;
    let size = dst.same_size(&updates);
    let base = match base {
        Some(base) if !groups.is_dense() => {
            copy_to(dst, base);
            None
        }
        base => base,
    };
    let call = RowScatter { base, ..*call };
    let (rows, steps) = (call.rows(), call.steps());
    let old = base.unwrap_or(dst.as_src());
    let cost = 2 * size + size * entries / groups.len().max(1);
    let cut = |part: usize, parts: usize| groups.cut(part, parts);
    // Only one thread can accumulate an element. The rows of places that have more than a thread's
    // share of the entries are split into columns for the threads.
    let threads = threads::num_threads();
    let full = if threads > 1 { groups.larger_than(entries / threads) } else { vec![] };

    let at = move |run: &Run<3>, place: usize| {
        let by = |k: usize| run.offsets[k] + place as isize * steps[k];
        // SAFETY: the walk keeps the run inside of the rows. The place lies inside of the axis,
        // because `Groups::of` has checked the entries.
        unsafe { (dst.origin().offset(by(0)), old.origin().offset(by(1))) }
    };
    let keep = |run: &Run<3>, place: usize| {
        if base.is_some() {
            let (to, from) = at(run, place);
            // SAFETY: as above. `old` is the base here, which does not overlap `dst`, as
            // `RowScatter::expect_sound` has checked.
            dispatch_width!(size, W => unsafe {
                move_run::<W>(to, run.strides[0], from, run.strides[1], run.len);
            });
        }
    };
    let ahead = ahead(&rows, 2, size);
    let last = groups.len().saturating_sub(1);
    match combine {
        Combine::Assign => {
            dispatch_width!(size, W => each_row(&rows, &cut, size, cost, 1, |run, group| {
                let place = groups.place(group);
                let from = |entry: usize| run.offsets[2] + entry as isize * steps[2];
                if let Some(ahead) = ahead {
                    let next = (group + ahead).min(last);
                    // Old rows that are kept are as far apart as rows that are assigned. (1M rows of
                    // 256 bytes into 1M, whose index names two thirds of the places: 22 ms instead of
                    // 49.)
                    let row = match groups.last(next) {
                        Some(entry) => updates.origin().wrapping_offset(from(entry)),
                        None => at(&run, groups.place(next)).1,
                    };
                    prefetch_far(row, run.len * size);
                }
                let Some(entry) = groups.last(group) else { return keep(&run, place) };
                let (to, _) = at(&run, place);
                // SAFETY: as above. There is a row of updates for each entry, and the updates don't
                // overlap `dst`, as `RowScatter::expect_sound` and its callers have checked.
                // Threads have different groups or different columns.
                unsafe {
                    let from = updates.origin().offset(from(entry));
                    move_run::<W>(to, run.strides[0], from, run.strides[2], run.len);
                }
            }));
        }
        Combine::Reduce { reduce, include_self } => {
            let (reduce_run, near): (ReduceRun, _) = dispatch_reduce!(
                reduce,
                dst.dtype(),
                (T, R) => (reduce_run::<T, R>, NearReduction::of::<T, R>())
            );
            let near = near.zip(Near::new(&call, groups, include_self));
            each_part(&rows, &cut, (size, cost), 1, &full, &|run, part| {
                if let Some((way, near)) = &near
                    && (way.fits)(near, run)
                {
                    // SAFETY: the walk keeps the run inside of the rows, and `fits` has accepted
                    // it. No other thread has these groups in these columns.
                    unsafe { (way.reduce)(near, run, part, &|place| keep(run, place)) };
                    return;
                }
                for group in part {
                    let (place, members) = (groups.place(group), groups.members(group));
                    if members.len() == 0 {
                        keep(run, place);
                        continue;
                    }
                    let (to, own) = at(run, place);
                    // SAFETY: as for assignments; `own` may be `to` itself.
                    unsafe {
                        let from = Rows {
                            origin: updates.origin().offset(run.offsets[2]),
                            row_stride: steps[2],
                            stride: run.strides[2],
                        };
                        let own = include_self.then_some((own, run.strides[1]));
                        reduce_run((to, run.strides[0]), own, from, members, run.len);
                    }
                }
            });
        }
    }
}

/// Returns the `cut` of [`each_row`] that splits `0..count` into equal parts.
pub(super) fn evenly(count: usize) -> impl Fn(usize, usize) -> usize {
    move |part, parts| {
        if part == parts { count } else { threads::part_of(count, parts, part).start }
    }
}

/// Calls `visit` for every run of a row and every number of `0..cut(1, 1)`. No two calls have both
/// the same elements and the same number. Rows are split into at least `columns`, and the numbers
/// into parts: `cut(k, n)` is where the k-th of n parts begins. Uses several threads if there is
/// enough work for them, at `cost` bytes per element.
pub(super) fn each_row<const N: usize>(
    rows: &Walk<N>,
    cut: &(dyn Fn(usize, usize) -> usize + Sync),
    size: usize,
    cost: usize,
    columns: usize,
    visit: impl Fn(Run<N>, usize) + Sync,
) {
    each_part(rows, cut, (size, cost), columns, &[], &|run, part| {
        part.for_each(|number| visit(*run, number))
    });
}

/// The bytes of a column of a row whose place has many entries. The accumulators of as many fit into
/// registers, so a whole row is read in such pieces, too. (Processor time of 100k rows of 512 `f32` by
/// a skewed index into 10k, with 64 threads: 23 ms, with columns of 64 bytes 54 ms.)
const COLUMN: usize = 256;

/// [`each_row`] that calls `visit` with ranges of numbers. The rows of the numbers `full`, which are
/// sorted, are split into columns. It is compiled once for each N.
fn each_part<const N: usize>(
    rows: &Walk<N>,
    cut: &(dyn Fn(usize, usize) -> usize + Sync),
    (size, cost): (usize, usize),
    columns: usize,
    full: &[usize],
    visit: &(dyn Fn(&Run<N>, Range<usize>) + Sync),
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
    // An item is one block of one run of the rows, and one part of the numbers.
    let wanted = threads::parts(rows.len().saturating_mul(count), cost);
    let parts = wanted.div_ceil(runs).min(count);
    let item = |item: usize| {
        let (run, part) = (item / parts, item % parts);
        let numbers: Range<usize> = cut(part, parts)..cut(part + 1, parts);
        let start = (run / blocks) * run_len + (run % blocks) * block;
        let end = (start + block).min((run / blocks + 1) * run_len);
        rows.runs(start..end, |run| {
            let mut first = numbers.start;
            let apart = full.iter().filter(|at| wanted > 1 && numbers.contains(at));
            for &at in apart.chain([&numbers.end]) {
                visit(&run, first..at);
                first = at + 1;
            }
        });
    };
    let items = runs * parts;
    if wanted <= 1 {
        return (0..items).for_each(item);
    }
    let column = (COLUMN / size).max(1);
    let (columns, lines) = (run_len.div_ceil(column), rows.len() / run_len);
    let long = |task: usize| {
        let (number, task) = (full[task / (columns * lines)], task % (columns * lines));
        let (start, end) = (task / columns * run_len, (task / columns + 1) * run_len);
        let start = start + task % columns * column;
        rows.runs(start..(start + column).min(end), |run| visit(&run, number..number + 1));
    };
    // The longest tasks are the first ones. Small items are bundled into as many tasks as are wanted.
    let (longs, bundles) = (full.len() * columns * lines, items.min(wanted));
    threads::run(longs + bundles, |task| match task.checked_sub(longs) {
        None => long(task),
        Some(bundle) => threads::part_of(items, bundles, bundle).for_each(&item),
    });
}
