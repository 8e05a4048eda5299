//! Finds the entries of an index that are the last ones to name their place.

use inlay_core::{DType, Result};

use super::{AHEAD, AxisIndex, LANES, at};
use crate::kernels::positions::{Positions, Shared};
use crate::memory::Scratch;
use crate::tuning::TILE;
use crate::walk::{Run, Walk};
use crate::{Bool8, Dst, threads};

/// Writes to `dst` for each entry of `index` whether it is the last one along `axis` that names its
/// place. `places` is the size of the axis.
///
/// # Errors
/// No memory for a number per place.
pub fn winning_elements(dst: Dst<'_>, index: &Positions, axis: usize, places: usize) -> Result<()> {
    let dst = dst.into_target();
    assert_eq!(dst.dtype(), DType::Bool, "true or false");
    let entries = AxisIndex::checked(index, index.layout(), places);
    let layouts = [dst.layout(), entries.layout];
    assert_eq!(layouts[0].shape(), layouts[1].shape(), "a result for each entry");
    let steps = layouts.map(|layout| layout.strides()[axis]);
    let lanes = Walk::of_rows(layouts, axis);
    let count = index.layout().shape()[axis];
    let cost = count.saturating_mul(2 * size_of::<i64>());
    let parts = threads::parts(lanes.len(), cost);
    // If neighbouring lanes are closer in memory than the entries of a lane, a block of lanes is
    // read together, as wide as the notes fit into the cache. (`put_along_axis` of 1024 x 1024
    // along axis 0 with its gradients: 10 ms, lane by lane 12.9 ms.)
    let across = steps[1].unsigned_abs() > lanes.run_strides()[1].unsigned_abs();
    let fit = TILE.get() / places.saturating_mul(size_of::<u32>()).max(1);
    let width = if across { lanes.run_len().min(LANES).min(fit).max(1) } else { 1 };
    // A note is the number of the last block in which a place was seen. So the notes need not be
    // cleared for each block.
    let noted = places.saturating_mul(width);
    let mut notes = Scratch::<u32>::filled(noted.saturating_mul(parts), u32::MAX)?;
    let notes = Shared(notes.as_mut_ptr());
    let block = |seen: &mut [u32], number: u32, run: Run<2>| {
        for j in (0..count as isize).rev() {
            if run.len > 1 {
                let ahead = run.offsets[1] + (j - AHEAD) * steps[1];
                entries.ask_for(ahead, run.len);
            }
            for lane in 0..run.len {
                let [to, entry] = at(&run, lane as isize);
                // SAFETY: lane and `j` lie inside of both layouts, whose shapes were compared
                // above. No other thread has these lanes. `seen` has `width` notes for each place,
                // and all positions are below `places`, as `AxisIndex::checked` has checked.
                unsafe {
                    let place = entries.read(entry + j * steps[1]) as usize;
                    let seen = seen.get_unchecked_mut(place * width + lane);
                    let wins = std::mem::replace(seen, number) != number;
                    let to = dst.origin().offset(to + j * steps[0]).cast::<Bool8>();
                    to.write(Bool8::new(wins));
                }
            }
        }
    };
    threads::run(parts, |part| {
        // SAFETY: the scratch buffer has `noted` notes for each part, so no other part has these.
        let seen = unsafe { std::slice::from_raw_parts_mut(notes.get().add(part * noted), noted) };
        let mut number = 0;
        lanes.runs(threads::part_of(lanes.len(), parts, part), |run: Run<2>| {
            for start in (0..run.len).step_by(width) {
                let len = (run.len - start).min(width);
                block(seen, number, Run { offsets: at(&run, start as isize), len, ..run });
                number += 1;
                if number == u32::MAX {
                    seen.fill(u32::MAX);
                    number = 0;
                }
            }
        });
    });
    Ok(())
}
