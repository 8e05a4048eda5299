//! Writes slices with a step. Such a slice is a *comb*: a periodic mask whose bits are computed
//! instead of read. The elements of the slice are its *teeth*.

use super::expand::Expansion;
use super::{BLOCK, WORD, first};
use crate::arch::{self, Level};
use crate::number::dispatch_width;
use crate::stream;
use crate::tuning::{EXPAND_SPARSE, STREAM};
use crate::{Dst, Src, threads};

/// A periodic mask that is the same in every row. All sizes are in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comb {
    /// The length of a row.
    pub row: usize,
    /// The position of the first tooth in the row.
    pub start: usize,
    /// The distance from one tooth to the next; at least `width`.
    pub step: usize,
    /// The width of a tooth; at least 1.
    pub width: usize,
    /// The number of teeth in a row.
    pub teeth: usize,
}

impl Comb {
    /// Merges all rows into one if the period of the teeth continues from row to row. Returns the
    /// comb and the number of rows.
    fn joined(self, rows: usize) -> (Comb, usize) {
        let seamless = self.row.is_multiple_of(self.step) && self.teeth == self.row / self.step;
        match self.row.checked_mul(rows) {
            Some(row) if seamless => (Comb { row, teeth: self.teeth * rows, ..self }, 1),
            _ => (self, rows),
        }
    }

    /// Returns how many of the first `len` elements of a row are in teeth.
    fn before(&self, len: usize) -> usize {
        let past = len.saturating_sub(self.start);
        let (whole, part) = (past / self.step, past % self.step);
        if whole < self.teeth {
            whole * self.width + part.min(self.width)
        } else {
            self.teeth * self.width
        }
    }

    /// Computes the bits of the `len` elements that begin at `from`.
    fn bits(&self, words: &mut [u64], from: usize, len: usize) {
        words.fill(0);
        let last = self.teeth.saturating_sub(1);
        let mut tooth = from.saturating_sub(self.start + self.width - 1).div_ceil(self.step);
        if self.teeth == 0 || tooth > last {
            return;
        }
        if WORD.is_multiple_of(self.step) {
            // The period divides a word, so all words are the same, except at the ends of the comb.
            let mut word = 0;
            for at in (0..WORD).step_by(self.step) {
                word |= first(self.width) << at;
            }
            // Rotate the pattern so that the teeth are at their positions relative to `from`.
            let phase = (self.start % self.step + self.step - from % self.step) % self.step;
            let word = word.rotate_left(phase as u32);
            let (low, high) = (self.start, self.start + last * self.step + self.width);
            for (k, out) in words.iter_mut().enumerate() {
                let at = from + k * WORD;
                let skipped = low.saturating_sub(at).min(WORD);
                let kept = high.min(from + len).saturating_sub(at).min(WORD);
                *out = word & first(kept) & !first(skipped);
            }
            return;
        }
        while tooth <= last {
            let at = self.start + tooth * self.step;
            if at >= from + len {
                return;
            }
            let low = at.max(from) - from;
            let high = (at + self.width).min(from + len) - from;
            super::pack::set(words, low, high - low);
            tooth += 1;
        }
    }
}

/// Writes the elements of `source` to the teeth and those of `base` to the gaps between them. Each
/// element is written once. All three views are contiguous. `dst` and `base` consist of rows of the
/// comb's length.
///
/// # Panics
/// When a view is not contiguous, when `dst` overlaps a source, when element sizes differ, or when
/// the numbers of elements don't match the comb.
pub fn interleave(dst: Dst<'_>, base: Src<'_>, source: Src<'_>, comb: Comb) {
    interleave_with(arch::level(), STREAM.get(), dst, base, source, comb);
}

/// [`interleave`] at `level`, with non-temporal stores for results of at least `stream` bytes.
pub(in crate::kernels) fn interleave_with(
    level: Level,
    stream: usize,
    dst: Dst<'_>,
    base: Src<'_>,
    source: Src<'_>,
    comb: Comb,
) {
    let dst = dst.into_target();
    dst.expect_apart(&base);
    dst.expect_apart(&source);
    let (size, numel) = (dst.same_size(&source), dst.layout().numel());
    dst.same_size(&base);
    if numel == 0 {
        return;
    }
    let rows = numel / comb.row;
    let end = comb
        .teeth
        .saturating_sub(1)
        .checked_mul(comb.step)
        .and_then(|at| at.checked_add(comb.start)?.checked_add(comb.width));
    let inside = comb.teeth == 0 || end.is_some_and(|end| end <= comb.row);
    assert!(comb.row * rows == numel && inside && (1..=comb.step).contains(&comb.width), "rows");
    assert!(base.layout().numel() == numel, "a base of one size");
    assert_eq!(source.layout().numel(), rows * comb.teeth * comb.width, "one element a place");
    let contiguous = [dst.layout(), base.layout(), source.layout()].map(|l| l.is_contiguous(size));
    assert_eq!(contiguous, [true; 3], "contiguous views");

    let stream = numel.saturating_mul(size) >= stream;
    let sparse = EXPAND_SPARSE.get() as u32;
    let (comb, rows) = comb.joined(rows);
    let blocks = comb.row.div_ceil(BLOCK);
    let taken_a_row = comb.before(comb.row);
    threads::split(rows * blocks, 3 * size * comb.row.min(BLOCK), |items| {
        let mut words = [0; BLOCK / WORD];
        for item in items {
            let (row, start) = (item / blocks, item % blocks * BLOCK);
            let len = BLOCK.min(comb.row - start);
            let words = &mut words[..len.div_ceil(WORD)];
            comb.bits(words, start, len);
            let at = (row * comb.row + start) * size;
            let taken = row * taken_a_row + comb.before(start);
            // SAFETY: the block lies inside of `dst` and `base`, and no other thread has it. The
            // source has an element for each tooth element of all rows, as was checked above, and
            // `taken` of them come before this block.
            unsafe {
                let job = Expansion {
                    words,
                    position: 0,
                    len,
                    to: dst.origin().add(at),
                    to_stride: size as isize,
                    old: base.origin().add(at),
                    old_stride: size as isize,
                    from: source.origin().add(taken * size),
                    fresh: true,
                    stream,
                    sparse,
                };
                dispatch_width!(size, W => job.run::<W>(level));
            }
        }
        if stream {
            stream::fence();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teeth_are_where_a_loop_finds_them() {
        for (row, start, step, width, teeth) in [
            (200, 0, 2, 1, 100),
            (200, 1, 2, 1, 99),
            (201, 3, 4, 1, 40),
            (200, 67, 8, 3, 9),
            (300, 5, 64, 64, 4),
            (300, 2, 7, 2, 30),
            (1000, 130, 100, 70, 8),
            (128, 127, 1, 1, 1),
            (77, 0, 3, 1, 0),
            (500, 0, 32, 31, 15),
        ] {
            let comb = Comb { row, start, step, width, teeth };
            let inside =
                |k: usize| k >= start && (k - start) / step < teeth && (k - start) % step < width;
            for from in (0..row).step_by(13) {
                assert_eq!(comb.before(from), (0..from).filter(|&k| inside(k)).count());
                for len in [1, 63, 64, 65, 190].map(|len: usize| len.min(row - from)) {
                    let mut words = [u64::MAX; 4];
                    let words = &mut words[..len.div_ceil(WORD)];
                    comb.bits(words, from, len);
                    for k in 0..words.len() * WORD {
                        let bit = words[k / WORD] >> (k % WORD) & 1 == 1;
                        assert_eq!(bit, k < len && inside(from + k), "{comb:?} {from} {len} {k}");
                    }
                }
            }
        }
    }
}
