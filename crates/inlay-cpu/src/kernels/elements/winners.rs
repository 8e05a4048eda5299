//! Which entries of an index are the last of their place.

use inlay_core::{DType, Result};

use super::{Entries, at};
use crate::kernels::positions::{Positions, Shared};
use crate::memory::Scratch;
use crate::walk::{Run, Walk};
use crate::{Bool8, Dst, threads};

/// Whether the entry is the last one along `axis` that names its place, one of `places`.
///
/// # Errors
/// No memory for a note a place.
pub fn winning_elements(dst: Dst<'_>, index: &Positions, axis: usize, places: usize) -> Result<()> {
    assert_eq!(dst.dtype(), DType::Bool, "true or false");
    let entries = Entries::checked(index, index.layout());
    let layouts = [dst.layout(), entries.layout];
    assert_eq!(layouts[0].shape(), layouts[1].shape(), "a result for each entry");
    let steps = layouts.map(|layout| layout.strides()[axis]);
    let lanes = Walk::of_rows(layouts, axis);
    let count = index.layout().shape()[axis];
    let cost = count.saturating_mul(2 * size_of::<i64>());
    let parts = threads::parts(lanes.len(), cost);
    // A note is the number of the lane that a place was last seen in, so that none is cleared.
    let mut notes = Scratch::<u32>::filled(places.saturating_mul(parts), u32::MAX)?;
    let notes = Shared(notes.as_mut_ptr());
    let lane = |seen: &mut [u32], number: u32, [to, entry]: [isize; 2]| {
        for j in (0..count as isize).rev() {
            // SAFETY: lane and j lie inside of both layouts, and this lane is this thread's.
            unsafe {
                let place = entries.at(entry + j * steps[1], places);
                let seen = place.and_then(|place| seen.get_mut(place));
                let wins = seen.is_some_and(|seen| std::mem::replace(seen, number) != number);
                let to = dst.origin().offset(to + j * steps[0]).cast::<Bool8>();
                to.write(Bool8::new(wins));
            }
        }
    };
    threads::run(parts, |part| {
        // SAFETY: each part has notes of its own.
        let seen =
            unsafe { std::slice::from_raw_parts_mut(notes.get().add(part * places), places) };
        let mut number = 0;
        lanes.runs(threads::part_of(lanes.len(), parts, part), |run: Run<2>| {
            for k in 0..run.len as isize {
                lane(seen, number, at(&run, k));
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
