//! A stable radix sort of entries by the place that they name.
//!
//! For each digit, from the lowest to the highest: each thread counts the digits of its own run of
//! entries, a prefix sum over all counts in the order of digits gives the new positions, and each
//! thread moves its entries in order. The result doesn't depend on which thread is first.

use inlay_core::Result;

use super::MAX_STEPS;
use super::positions::zeros;
use super::sums::exclusive;
use crate::memory::Buffer;
use crate::shader::{Access, Kernel, wgsl, wgsl_file};

/// Bits of a digit.
const DIGIT: u32 = 8;
const DIGITS: u32 = 1 << DIGIT;

/// The fewest entries of a run, since there is a count for each digit of each run.
const RUN: u32 = 256;

/// Up to so many entries, each counts the entries before it: one kernel instead of six per digit.
const FEW: u32 = 256;

/// The most runs: enough for every core of a large device.
const RUNS: u32 = 1 << 14;

/// Entries in the order of their keys. Entries of one key are in index order.
pub(super) struct Sorted {
    pub(super) keys: Buffer,
    /// The number of each entry before the sort.
    pub(super) order: Buffer,
}

/// Sorts `count` keys below `places`.
pub(super) fn sort(keys: &Buffer, count: u32, places: usize) -> Result<Sorted> {
    let gpu = keys.gpu();
    let room = || Buffer::on(gpu, 4 * count as usize);
    if count <= FEW {
        let sorted = Sorted { keys: room()?, order: room()? };
        Kernel::new("rank_keys", wgsl_file!("rank_keys.wgsl"), keys)
            .words("keys", keys)
            .operand("to_keys", &sorted.keys, 4, Access::Write)
            .operand("to_order", &sorted.order, 4, Access::Write)
            .run(count)?;
        return Ok(sorted);
    }
    let run = count.div_ceil(RUNS).clamp(RUN, MAX_STEPS);
    let runs = count.div_ceil(run);
    let bits = usize::BITS - places.saturating_sub(1).leading_zeros();
    let mut sorted: Option<Sorted> = None;
    // There is at least one pass, which numbers the entries.
    for digit in 0..bits.div_ceil(DIGIT).max(1) {
        let from = sorted.as_ref().map_or(keys, |sorted| &sorted.keys);
        let counts = zeros(keys, DIGITS * runs)?;
        let kernel = |name, body| {
            Kernel::new(name, body, keys)
                .constant("MASK", DIGITS - 1)
                .params(&[digit * DIGIT, run, runs, count])
                .words("keys", from)
                .operand("counts", &counts, 4, Access::Write)
        };
        kernel("count_digits", wgsl_file!("count_digits.wgsl")).run(runs)?;
        exclusive(&counts, DIGITS * runs)?;
        let next = Sorted { keys: room()?, order: room()? };
        let moves = kernel("move_digits", wgsl_file!("move_digits.wgsl"))
            .operand("to_keys", &next.keys, 4, Access::Write)
            .operand("to_order", &next.order, 4, Access::Write);
        match &sorted {
            Some(sorted) => moves.words("order", &sorted.order),
            None => moves.with(wgsl!("fn load_order(i: u32) -> u32 { return i; }\n")),
        }
        .run(runs)?;
        sorted = Some(next);
    }
    Ok(sorted.unwrap_or_else(|| unreachable!("there is at least one pass")))
}

impl Sorted {
    /// For each of `places`, the first of its entries, plus 1, and the entry after its last; or 0 twice.
    pub(super) fn ends(&self, count: u32, places: u32) -> Result<Buffer> {
        let ends = zeros(&self.keys, 2 * places)?;
        Kernel::new("ends", wgsl_file!("ends.wgsl"), &ends)
            .words("keys", &self.keys)
            .operand("ends", &ends, 4, Access::Write)
            .run(count)?;
        Ok(ends)
    }
}
