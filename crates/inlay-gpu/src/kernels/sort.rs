//! A stable radix sort of entries by the place that they name.
//!
//! The sort has one pass per digit, from the lowest to the highest digit. In a pass, each thread
//! counts the digits in its own run of entries. A prefix sum over the counts of all digits and runs
//! gives the new positions. Then each thread moves its entries in order. The result doesn't depend
//! on the order in which the threads run.

use inlay_core::Result;

use super::MAX_STEPS;
use super::positions::zeros;
use super::sums::exclusive;
use crate::memory::Buffer;
use crate::shader::{Access, Kernel, wgsl, wgsl_file};

/// The number of bits of a digit.
const DIGIT: u32 = 8;
const DIGITS: u32 = 1 << DIGIT;

/// The smallest number of entries in a run. Shorter runs would need more counts than entries,
/// because each run has a count for each digit.
const RUN: u32 = 256;

/// The largest number of entries that are sorted by one kernel, in which each entry counts the
/// entries before it. The radix sort needs about six kernels per digit.
const FEW: u32 = 256;

/// The largest number of runs. It is enough for all cores of a large device.
const RUNS: u32 = 1 << 14;

/// Entries sorted by key. Entries with equal keys are in index order.
pub(super) struct Sorted {
    pub(super) keys: Buffer,
    /// The original number of each entry.
    pub(super) order: Buffer,
}

/// Sorts `count` keys. All keys are smaller than `places`.
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
    // At least one pass is needed, because it fills `order`.
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
    /// Returns two words for each of `places` places: its first sorted entry, plus 1, and the entry
    /// after its last one. Both are 0 if the place has no entries.
    pub(super) fn ends(&self, count: u32, places: u32) -> Result<Buffer> {
        let ends = zeros(&self.keys, 2 * places)?;
        Kernel::new("ends", wgsl_file!("ends.wgsl"), &ends)
            .words("keys", &self.keys)
            .operand("ends", &ends, 4, Access::Write)
            .run(count)?;
        Ok(ends)
    }
}
