//! A stable sort of entries by the place that they name.
//!
//! From the lowest digit on: each thread counts the digits of its own run of entries, the counts are
//! summed over all runs in the order of digits, and each thread moves its entries in order. Nothing
//! depends on which thread comes first.

use inlay_core::Result;

use super::positions::zeros;
use super::sums::exclusive;
use crate::memory::Buffer;
use crate::shader::{Access, Kernel};

/// Bits of a digit.
const DIGIT: u32 = 8;
const DIGITS: u32 = 1 << DIGIT;

/// Entries of a thread, at least: there is a count for each digit of each run.
const RUN: u32 = 256;

/// Entries up to which each counts those before it: one kernel instead of six for each digit.
const FEW: u32 = 256;

/// Runs, at most: enough for every core of a large device.
const RUNS: u32 = 1 << 14;

/// Entries in the order of their keys, and those of one key in index order.
pub(super) struct Sorted {
    pub(super) keys: Buffer,
    /// Which entry each was.
    pub(super) order: Buffer,
}

/// Sorts `count` keys below `places`.
pub(super) fn sort(keys: &Buffer, count: u32, places: usize) -> Result<Sorted> {
    let gpu = keys.gpu();
    let room = || Buffer::on(gpu, 4 * count as usize);
    if count <= FEW {
        let sorted = Sorted { keys: room()?, order: room()? };
        Kernel::new("rank_keys", include_str!("rank_keys.wgsl"), keys)
            .words("keys", keys)
            .operand("to_keys", &sorted.keys, 4, Access::Write)
            .operand("to_order", &sorted.order, 4, Access::Write)
            .run(count)?;
        return Ok(sorted);
    }
    // No run is longer than a device in software walks, which ends loops after 65,535 steps.
    let run = count.div_ceil(RUNS).clamp(RUN, 1 << 15);
    let runs = count.div_ceil(run);
    let bits = usize::BITS - places.saturating_sub(1).leading_zeros();
    let mut sorted: Option<Sorted> = None;
    // One pass at least, which numbers the entries.
    for digit in 0..bits.div_ceil(DIGIT).max(1) {
        let from = sorted.as_ref().map_or(keys, |sorted| &sorted.keys);
        let counts = zeros(keys, DIGITS * runs)?;
        let params = [digit * DIGIT, run, runs, count];
        Kernel::new("count_digits", include_str!("count_digits.wgsl"), keys)
            .constant("MASK", DIGITS - 1)
            .params(&params)
            .words("keys", from)
            .operand("counts", &counts, 4, Access::Write)
            .run(runs)?;
        exclusive(&counts, DIGITS * runs)?;
        let next = Sorted { keys: room()?, order: room()? };
        let mut kernel = Kernel::new("move_digits", include_str!("move_digits.wgsl"), keys)
            .constant("MASK", DIGITS - 1)
            .params(&params)
            .words("keys", from)
            .operand("counts", &counts, 4, Access::Write)
            .operand("to_keys", &next.keys, 4, Access::Write)
            .operand("to_order", &next.order, 4, Access::Write);
        kernel = match &sorted {
            Some(sorted) => kernel.words("order", &sorted.order),
            None => kernel.with("first", "fn load_order(i: u32) -> u32 { return i; }\n"),
        };
        kernel.run(runs)?;
        sorted = Some(next);
    }
    Ok(sorted.unwrap_or_else(|| unreachable!("one pass at least")))
}

impl Sorted {
    /// For each of `places`: the first of its entries, plus 1, and the one after its last; or 0.
    pub(super) fn ends(&self, count: u32, places: u32) -> Result<Buffer> {
        let ends = zeros(&self.keys, 2 * places)?;
        Kernel::new("ends", include_str!("ends.wgsl"), &ends)
            .words("keys", &self.keys)
            .operand("ends", &ends, 4, Access::Write)
            .run(count)?;
        Ok(ends)
    }
}
