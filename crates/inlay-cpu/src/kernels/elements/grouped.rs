//! Reduces lanes place by place, after the entries of each lane are grouped by place.

use inlay_core::{Combine, Result};

use super::{AxisIndex, AxisScatter, at, copy_base};
use crate::kernels::groups::Groups;
use crate::kernels::positions::Shared;
use crate::kernels::reducer::{ReduceRun, Rows, dispatch_reduce, reduce_run};
use crate::{Src, threads};

/// Reduces the values of all entries into their places. The entries are checked positions.
pub(super) fn scatter(
    call: &AxisScatter<'_>,
    base: Option<Src<'_>>,
    entries: &AxisIndex<'_>,
) -> Result<()> {
    let Combine::Reduce { reduce, include_self } = call.combine else {
        unreachable!("an assignment is written directly")
    };
    let (dst, values, places) = (call.dst, call.values, call.places());
    let count = entries.layout.shape()[call.axis];
    let (lanes, steps) = call.lanes(entries.layout, call.dst.layout());
    let cost = count.saturating_mul(2 * dst.same_size(&values) + size_of::<i64>());
    let parts = threads::parts(lanes.len(), cost);
    let mut spaces = Vec::new();
    for _ in 0..parts {
        spaces.push(Groups::with_capacity(count, places, false)?);
    }
    copy_base(dst, base);
    let spaces = Shared(spaces.as_mut_ptr());
    let reduce_run: ReduceRun = dispatch_reduce!(reduce, dst.dtype(), (T, R) => reduce_run::<T, R>);
    threads::run(parts, |part| {
        // SAFETY: `spaces` has one workspace for each part, which no other thread uses.
        let groups = unsafe { &mut *spaces.get().add(part) };
        let range = threads::part_of(lanes.len(), parts, part);
        lanes.runs(range, |run| {
            for lane in 0..run.len as isize {
                let [to, entry, from, _] = at(&run, lane);
                let named = |j: usize| {
                    // SAFETY: the walk keeps the lane inside of the index, and `j` is below the index's
                    // length along the axis.
                    let place = unsafe { entries.at(entry + j as isize * steps[1], places) };
                    place.unwrap_or_else(|| unreachable!("positions were checked"))
                };
                groups.fill(count, named);
                for group in 0..groups.len() {
                    let (place, members) = (groups.place(group), groups.members(group));
                    if members.len() == 0 {
                        continue;
                    }
                    // SAFETY: the walk keeps the lane inside of `dst` and `values`. `AxisIndex::at` has
                    // checked the place, and entries are below `count`. `scatter_elements` has checked
                    // that the views have one dtype and don't overlap. No other thread has this lane.
                    unsafe {
                        let to = dst.origin().offset(to + place as isize * steps[0]);
                        let from = Rows {
                            origin: values.origin().offset(from),
                            row_stride: steps[2],
                            stride: 0,
                        };
                        let own = include_self.then_some((to.cast_const(), 0));
                        reduce_run((to, 0), own, from, members, 1);
                    }
                }
            }
        });
    });
    Ok(())
}
