//! Python's slice rules: clamping, negative positions from the end, negative steps.

use std::fmt;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use serde::{Deserialize, Serialize};

use crate::Integer;

/// `start:stop:step` as written, before the length of the axis is known.
///
/// Rust's ranges of any integer type convert to slices. Their ends follow the rules of slices:
/// negative ones count from the end of the axis, and those past its ends are clamped.
///
/// ```
/// use inlay_core::Slice;
///
/// assert_eq!(Slice::from(1..4), Slice::new(1, 4, 1));
/// assert_eq!(Slice::from(..=2), Slice::new(None, 3, 1));
/// assert_eq!(Slice::from(-2..), Slice::new(-2, None, 1));
/// assert_eq!(Slice::from(..).step(-1), Slice::new(None, None, -1));
/// ```
///
/// `1..-1` works too, but Clippy takes a literal of this kind for an empty range
/// (`reversed_empty_ranges`); `Slice::new(1, -1, 1)` says the same.
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

    /// Returns the slice `start:stop:step`. An end is an integer, or `None` if it is open.
    ///
    /// ```
    /// # use inlay_core::{ResolvedSlice, Slice};
    /// let slice = Slice::new(-1, None, -3);
    /// assert_eq!(slice.resolve(6), Some(ResolvedSlice { start: 5, step: -3, len: 2 }));
    /// ```
    pub fn new(start: impl IntoEnd, stop: impl IntoEnd, step: impl Integer) -> Self {
        Slice { start: start.into_end(), stop: stop.into_end(), step: step.to_i64() }
    }

    /// Returns the same ends with another step.
    ///
    /// ```
    /// # use inlay_core::Slice;
    /// assert_eq!(Slice::from(2..8).step(3), Slice::new(2, 8, 3));
    /// ```
    #[must_use]
    pub fn step(self, step: impl Integer) -> Self {
        Slice { step: step.to_i64(), ..self }
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

/// An end of a slice: an integer, or `None` if the end is open.
pub trait IntoEnd {
    /// Returns the end.
    fn into_end(self) -> Option<i64>;
}

impl<T: Integer> IntoEnd for T {
    fn into_end(self) -> Option<i64> {
        Some(self.to_i64())
    }
}

impl IntoEnd for Option<i64> {
    fn into_end(self) -> Option<i64> {
        self
    }
}

/// Returns the end after the position `last`. After the last position of an axis, -1, there is no
/// end to name: 0 is the first position.
fn after(last: impl Integer) -> Option<i64> {
    last.to_i64().checked_add(1).filter(|end| *end != 0)
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Self {
        Slice::ALL
    }
}

impl<T: Integer> From<Range<T>> for Slice {
    fn from(range: Range<T>) -> Self {
        Slice::new(range.start, range.end, 1)
    }
}

impl<T: Integer> From<RangeFrom<T>> for Slice {
    fn from(range: RangeFrom<T>) -> Self {
        Slice::new(range.start, None, 1)
    }
}

impl<T: Integer> From<RangeTo<T>> for Slice {
    fn from(range: RangeTo<T>) -> Self {
        Slice::new(None, range.end, 1)
    }
}

impl<T: Integer> From<RangeInclusive<T>> for Slice {
    fn from(range: RangeInclusive<T>) -> Self {
        Slice::new(*range.start(), after(*range.end()), 1)
    }
}

impl<T: Integer> From<RangeToInclusive<T>> for Slice {
    fn from(range: RangeToInclusive<T>) -> Self {
        Slice::new(None, after(range.end), 1)
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

    #[test]
    fn ranges_of_all_kinds_and_integers_are_slices() {
        assert_eq!(Slice::from(..), Slice::ALL);
        assert_eq!(Slice::from(1..3), Slice::new(1, 3, 1));
        assert_eq!(Slice::from(1usize..3), Slice::new(1, 3, 1));
        assert_eq!(Slice::from(-2i64..), Slice::new(-2, None, 1));
        assert_eq!(Slice::from(..-1isize), Slice::new(None, -1, 1));
        assert_eq!(Slice::from(0..=2u8), Slice::new(0, 3, 1));
        let last = -1;
        assert_eq!(Slice::from(1..=last), Slice::new(1, None, 1));
        assert_eq!(Slice::from(..=-1), Slice::ALL);
        assert_eq!(Slice::from(..=-2), Slice::new(None, -1, 1));
        assert_eq!(Slice::from(0..usize::MAX).stop, Some(i64::MAX));
        assert_eq!(Slice::from(0..=u64::MAX).stop, None);
    }
}
