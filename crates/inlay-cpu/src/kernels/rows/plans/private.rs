//! The plan for few places and exact reductions: each thread reduces a slice of the entries into
//! private places, which are merged in the order of the slices.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::Result;

use super::super::direct::Direct;
use super::super::notes::Notes;
use super::Found;
use super::slice::{Room, Slice};
use crate::kernels::groups::MERGED;
use crate::kernels::listing::{BLOCK, IndexReader};
use crate::threads;
use crate::tuning::TILE;

/// The most bytes of private places for each entry, so that a call needs little memory beside its
/// result. (Maxima of 1M rows of 16 `f32` into 4,000 with 64 threads would take 17 bytes per entry.)
const BESIDE: usize = 16;

impl Direct<'_> {
    /// Returns whether each of `threads` can have private places, because it has as much work with
    /// its share of the entries. (Processor time of sums of 4M `i32`, with private places and
    /// partitioned: with 64 threads, 60k places take 33 and 51 ms, 120k 60 and 48 ms; with 16 threads,
    /// 120k take 30 and 48 ms, 250k 47 and 46 ms. With 2 threads that each read the whole index
    /// instead, 120k take 14 and 21 ms, and 250k, which the second-level cache does not hold, 21 and
    /// 18 ms.)
    pub(super) fn has_private_places(&self, entries: usize, threads: usize) -> bool {
        let bytes = self.places().saturating_mul(self.row_bytes());
        // The places of a thread stay in its caches.
        self.may_merge()
            && bytes <= TILE.get()
            && self.places().saturating_mul(threads) <= entries
            && bytes.saturating_mul(threads) <= entries.saturating_mul(BESIDE)
    }

    /// Writes all entries. Nothing is written if an entry is out of range.
    pub(super) fn private(&self, parts: usize, index: &IndexReader<'_>) -> Result<bool> {
        let partials = self.partials(parts, self.places())?;
        let (own, inside) = (0..self.places(), AtomicBool::new(true));
        threads::run(parts, |part| {
            // SAFETY: each part has a partial result of its own.
            let (stage, bits) = unsafe { partials.begin(part) };
            let entries = threads::part_of(index.len(), parts, part);
            self.rows.runs(self.slab(0), |run| {
                let mut room: Room = [const { MaybeUninit::uninit() }; BLOCK];
                let mut slice =
                    Slice::new(self, index, entries.clone(), (&own, Some(stage)), &mut room);
                if slice.write(run, partials.writers, bits) != Found::All {
                    inside.store(false, Relaxed);
                }
            });
        });
        if !inside.into_inner() {
            return Ok(false);
        }
        // The places that are merged together. Few places are split within a word of bits.
        let word = u32::BITS as usize;
        let shares = 2 * threads::num_threads();
        let unit = (self.places() / shares).clamp(1, word).next_power_of_two();
        let cost = (MERGED * parts + 2).saturating_mul(unit * self.row_bytes());
        threads::split(self.places().div_ceil(unit), cost, |units| {
            let own = units.start * unit..(units.end * unit).min(self.places());
            self.copy_base(&own);
            let step = if unit == word { own.len() } else { unit };
            for first in own.clone().step_by(step.max(1)) {
                let own = first..(first + step).min(own.end);
                let mut named = match Notes::of(self.call.combine) {
                    Notes::Named => vec![0; own.len().div_ceil(word)],
                    _ => vec![],
                };
                for part in 0..parts {
                    // SAFETY: all partial results have all places and are complete. No other thread has
                    // these places of the destination.
                    unsafe {
                        let to = self.place(own.start);
                        partials.merge(self, part, own.clone(), to, &mut named);
                    }
                }
            }
        });
        Ok(true)
    }
}
