//! Places that most entries name: their rows are accumulated side by side, in index order.
//!
//! By place, a row follows from none before, and each is asked for on its own: a core has too few
//! such requests on their way at a time, and gets a third of what it gets when it reads in the order
//! of memory. Where few places have most of the entries, their accumulators stay in the cache, and
//! one thread reads all updates in order; the others write the rest by place.

use std::hint::black_box;

use inlay_core::{Combine, Result};

use super::Call;
use super::near::has_avx2;
use crate::kernels::positions::Positions;
use crate::kernels::reducer::{Reducer, dispatch_reduce};
use crate::memory::Space;
use crate::threads;

/// Elements that are joined at a time; rows are made of whole ones.
const LANES: usize = 16;

/// Bytes of accumulators: a quarter of the second cache. For 1M rows of 256 bytes whose places follow
/// Zipf's law (1.3), 1024 places have nine of ten entries; with all updates read in order, joining
/// 64 places takes 8.3 ms, 1024 take 9.2, and all 100k take 13.
const HOT: usize = 256 << 10;

/// Bytes of the longest rows: longer ones are read in order for the most part by place, too. (256 MB
/// in rows of 256 bytes: 0.76 of the time, of 512 bytes: 0.84, of 1 KiB: 0.87.)
const LONGEST: usize = 1 << 10;

/// Fewer entries than this are read from caches, where order matters less. (Rows of 256 bytes, 33k of
/// them: 1.07 of the time, 100k: 0.91, 300k: 0.81.)
const MANY: usize = 1 << 16;

/// With more threads than this, all of them together read more by place than one in order: 11 GB/s
/// each against 32.
const MOST_THREADS: usize = 3;

/// Entries that are looked at to tell whether it is worth to look at more.
const FEW: usize = 1024;

/// One of so many entries is counted to find the places. An odd number, for indices with a period.
const STEP: usize = 17;

/// At most one of so many entries may name another place: one thread brings them together meanwhile,
/// and takes three times as long for each.
const REST: usize = 4;

/// The places that most entries name.
pub(super) struct Hot {
    /// For each place, which accumulators are its own; the first ones are everybody else's.
    slots: Space<u16>,
    /// The places whose own accumulators are the second ones, the third, and so on.
    places: Vec<usize>,
}

/// Accumulators, of whatever type.
pub(super) type Room = Space<u128>;

impl Hot {
    /// Finds them, if there are so few that have so many entries that it pays; with room for what
    /// [`Hot::stream`] accumulates.
    pub(super) fn find(call: &Call<'_>, index: &Positions) -> Result<Option<(Self, Room)>> {
        let values = index.values();
        let places = call.dst.layout().shape()[call.axis];
        let Some(row) = call.bytes_of_accumulated_row() else { return Ok(None) };
        let many = values.len() >= MANY.max(places);
        if !many || threads::num_threads() > MOST_THREADS || !is_uneven(values) {
            return Ok(None);
        }
        // First counts, then numbers of accumulators.
        let mut slots = Space::<u16>::new(places)?;
        slots.fill(0);
        for &at in values.iter().step_by(STEP) {
            slots[at as usize] = slots[at as usize].saturating_add(1);
        }
        // The workspace of a call is bounded by its entries.
        let most = HOT.min(2 * values.len()) / row;
        let Some(least) = least_of_most(&slots, most.saturating_sub(1)) else { return Ok(None) };
        let cold = |count: &&u16| **count < least;
        let rest: usize = slots.iter().filter(cold).map(|&count| usize::from(count)).sum();
        if rest > values.len() / STEP / REST {
            return Ok(None);
        }
        let mut hot = vec![];
        for (place, slot) in slots.iter_mut().enumerate() {
            if *slot >= least {
                hot.push(place);
                *slot = hot.len() as u16;
            } else {
                *slot = 0;
            }
        }
        let words = ((hot.len() + 1) * row).div_ceil(size_of::<u128>());
        Ok(Some((Hot { slots, places: hot }, Room::new(words)?)))
    }

    /// Whether a place is one of them.
    #[inline]
    pub(super) fn has(&self, place: usize) -> bool {
        self.slots[place] > 0
    }

    /// Reads all updates in order, and writes the rows of these places.
    pub(super) fn stream(&self, call: &Call<'_>, index: &Positions, room: &mut Room) {
        let Combine::Reduce { reduce, .. } = call.combine else { unreachable!("a reduction") };
        // SAFETY: `find` has seen that the CPU has the features and that rows have no gaps; the
        // accumulators have room for every slot's row.
        #[cfg(target_arch = "x86_64")]
        dispatch_reduce!(reduce, call.dst.dtype(), (T, R) => unsafe {
            self.stream_avx2::<T, R>(call, index, room);
        });
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (reduce, index, room);
    }

    /// # Safety
    /// The CPU has the features. The call is one that has a length for
    /// [`Call::bytes_of_accumulated_row`], and this was made for it and its index.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn stream_avx2<T: Copy, R: Reducer<T>>(
        &self,
        call: &Call<'_>,
        index: &Positions,
        room: &mut Room,
    ) {
        let Call { dst, updates, combine, .. } = *call;
        let old = call.base.unwrap_or(dst.as_src());
        let (rows, steps) = (call.rows(), call.steps());
        let len = rows.len();
        // Rows that all run backwards are walked from their ends.
        let mut offsets = [0; 3];
        rows.runs(0..len, |run| offsets = run.offsets);
        let acc = room.as_mut_ptr().cast::<R::Acc>();
        let mut counts = vec![0usize; self.places.len() + 1];
        let acc_of = |slot: usize| acc.wrapping_add(slot * len);
        let include_self = matches!(combine, Combine::Reduce { include_self: true, .. });
        // SAFETY: the caller's promise: rows of `len` elements without gaps at every place and
        // every entry, and as many accumulators at every slot, of which any bits are a value.
        unsafe {
            let to_place =
                |place: usize| dst.origin().offset(offsets[0] + place as isize * steps[0]);
            let old_at = |place: usize| old.origin().offset(offsets[1] + place as isize * steps[1]);
            let entry_at = |k: usize| updates.origin().offset(offsets[2] + k as isize * steps[2]);
            let widen = |from: *const T| R::widen_avx2(from.cast::<[T; LANES]>().read_unaligned());
            let set = |acc: *mut R::Acc, row: *const u8| {
                for k in (0..len).step_by(LANES) {
                    acc.add(k).cast::<[R::Acc; LANES]>().write(widen(row.cast::<T>().add(k)));
                }
            };
            // What the other places get joins accumulators that nobody reads: a branch that leaves
            // it out would be mispredicted, and a gap in what is read would be noticed by the CPU.
            counts[0] = 1;
            if include_self {
                for (k, &place) in self.places.iter().enumerate() {
                    set(acc_of(k + 1), old_at(place));
                    counts[k + 1] = 1;
                }
            }
            for (entry, &place) in index.values().iter().enumerate() {
                let slot = usize::from(self.slots[place as usize]);
                let row = entry_at(entry);
                let count = &mut counts[slot];
                *count += 1;
                if *count == 1 {
                    set(acc_of(slot), row);
                    continue;
                }
                // Known to be the same place, the larger of two would be written under a mask, and
                // what is written so has to reach the cache before it can be read again: 4 times as
                // long.
                let (acc, to) = (acc_of(slot), black_box(acc_of(slot)));
                for k in (0..len).step_by(LANES) {
                    let mut joined = acc.add(k).cast::<[R::Acc; LANES]>().read();
                    let values = widen(row.cast::<T>().add(k));
                    for lane in 0..LANES {
                        joined[lane] = R::join(joined[lane], values[lane]);
                    }
                    to.add(k).cast::<[R::Acc; LANES]>().write(joined);
                }
            }
            for (slot, &place) in (1..).zip(&self.places) {
                let to = to_place(place).cast::<T>();
                for k in (0..len).step_by(LANES) {
                    let to = to.add(k).cast::<[T; LANES]>();
                    let mut acc = acc_of(slot).add(k).cast::<[R::Acc; LANES]>().read();
                    let mut result = to.read_unaligned();
                    R::finish_slice(&mut acc, counts[slot], &mut result);
                    to.write_unaligned(result);
                }
            }
        }
    }
}

impl Call<'_> {
    /// How many bytes the accumulators of a row need, if it is one that can be read in order: short,
    /// without gaps, and next to the row of the next entry.
    fn bytes_of_accumulated_row(&self) -> Option<usize> {
        let Combine::Reduce { reduce, .. } = self.combine else { return None };
        let (rows, size) = (self.rows(), self.dst.dtype().size());
        let bytes = rows.len() * size;
        let whole = rows.len() == rows.run_len() && rows.run_strides() == [size as isize; 3];
        let follows = self.steps()[2] == bytes as isize;
        let fits = rows.len() > 0 && rows.len().is_multiple_of(LANES) && bytes <= LONGEST;
        if !(whole && follows && fits && has_avx2()) {
            return None;
        }
        let acc = dispatch_reduce!(reduce, self.dst.dtype(), (T, R) => {
            size_of::<<R as Reducer<T>>::Acc>()
        });
        Some(rows.len() * acc)
    }
}

/// Whether some entries name what most others name.
fn is_uneven(values: &[i64]) -> bool {
    let step = (values.len() / FEW).max(1);
    let mut few: Vec<i64> = values.iter().step_by(step).take(FEW).copied().collect();
    few.sort_unstable();
    let again = few.windows(2).filter(|pair| pair[0] == pair[1]).count();
    again >= few.len() / 2
}

/// The least count, 2 or more, that no more than `most` places have reached, if there is one.
fn least_of_most(counts: &[u16], most: usize) -> Option<u16> {
    let mut places_with = [0usize; 256];
    for &count in counts {
        places_with[usize::from(count.min(255))] += 1;
    }
    let (mut least, mut reached) = (None, 0);
    for count in (2..256).rev() {
        reached += places_with[count];
        if reached > most {
            break;
        }
        least = Some(count as u16);
    }
    least.filter(|_| most > 0)
}
