//! Python's slice rules: clamping, negative positions from the end, negative steps.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `start:stop:step` as written, before the length of the axis is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slice {
    /// The first position. `None` means the first one in the direction of the step.
    pub start: Option<i64>,
    /// The position before which to stop. `None` means past the last one in the direction of the
    /// step.
    pub stop: Option<i64>,
    /// The distance between positions. It must not be 0.
    pub step: i64,
}

/// The positions that a slice selects on an axis of a known length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResolvedSlice {
    /// The first position, or 0 if none is selected.
    pub start: usize,
    /// The distance between positions.
    pub step: isize,
    /// The number of positions.
    pub len: usize,
}

impl ResolvedSlice {
    /// Returns `len` positions from `start` on.
    pub const fn run(start: usize, len: usize) -> Self {
        ResolvedSlice { start, step: 1, len }
    }
}

impl fmt::Debug for Slice {
    /// As Python writes it: `2:8:3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: Option<i64>| end.map(|end| end.to_string()).unwrap_or_default();
        write!(f, "{}:{}", end(self.start), end(self.stop))?;
        if self.step != 1 { write!(f, ":{}", self.step) } else { Ok(()) }
    }
}

impl Slice {
    /// The slice of a whole axis.
    pub const ALL: Slice = Slice { start: None, stop: None, step: 1 };

    /// Returns the slice `start:stop:step`.
    pub fn new(start: impl Into<Option<i64>>, stop: impl Into<Option<i64>>, step: i64) -> Self {
        Slice { start: start.into(), stop: stop.into(), step }
    }

    /// Returns what the slice selects of `0..len`, or `None` if the step is 0.
    pub fn resolve(self, len: usize) -> Option<ResolvedSlice> {
        if self.step == 0 {
            return None;
        }
        // An axis with memory is not longer than `i64::MAX`. Positions are clamped to the range
        // from -1 to its length, so nothing below overflows.
        let (n, step) = (i64::try_from(len).unwrap_or(i64::MAX), self.step);
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let clamp =
            |position: i64| (if position < 0 { position + n } else { position }).clamp(low, high);
        let start = self.start.map_or(if step > 0 { low } else { high }, clamp);
        let stop = self.stop.map_or(if step > 0 { high } else { low }, clamp);
        let span = if step > 0 { stop - start } else { start - stop };
        let count = match u64::try_from(span - 1) {
            Ok(last) if step == 1 => last + 1,
            Ok(last) => last / step.unsigned_abs() + 1,
            Err(_) => 0,
        };
        Some(ResolvedSlice {
            start: if count == 0 { 0 } else { start as usize },
            // A step longer than the axis is never taken, so it can be shortened to fit.
            step: step.clamp(-n.max(1), n.max(1)) as isize,
            len: count as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python's rule, one position at a time.
    fn naive(slice: Slice, len: usize) -> Vec<usize> {
        let n = len as i128;
        let fix = |p: i64| if p < 0 { p as i128 + n } else { p as i128 };
        let mut at = match slice.start {
            Some(p) if slice.step > 0 => fix(p).max(0),
            Some(p) => fix(p).min(n - 1),
            None if slice.step > 0 => 0,
            None => n - 1,
        };
        let stop = match slice.stop {
            Some(p) if slice.step > 0 => fix(p).min(n),
            Some(p) => fix(p).max(-1),
            None if slice.step > 0 => n,
            None => -1,
        };
        let mut out = vec![];
        while (slice.step > 0 && at < stop) || (slice.step < 0 && at > stop) {
            out.push(at as usize);
            at += slice.step as i128;
        }
        out
    }

    #[test]
    fn resolves_as_python_does() {
        let ends = [None, Some(i64::MIN), Some(i64::MAX), Some(-7), Some(-5), Some(-1)]
            .into_iter()
            .chain([0, 1, 4, 5, 6].map(Some));
        for len in [0, 1, 2, 5] {
            for start in ends.clone() {
                for stop in ends.clone() {
                    for step in [1, 2, 5, 7, i64::MAX, -1, -2, -5, -9, i64::MIN] {
                        let slice = Slice { start, stop, step };
                        let got = slice.resolve(len).expect("step is not 0");
                        let got: Vec<usize> = (0..got.len)
                            .map(|k| (got.start as isize + k as isize * got.step) as usize)
                            .collect();
                        assert_eq!(got, naive(slice, len), "{slice:?} of {len}");
                    }
                }
            }
        }
        assert_eq!(Slice::new(0, 1, 0).resolve(3), None);
    }
}
