//! Transposes squares of words whose sides are one cache line.

use crate::arch::{self, LINE};

/// Transposes a square of words whose rows are one cache line long: the rows at `from`, `step`
/// bytes apart, become the columns of the contiguous lines at `to`.
///
/// # Safety
/// The square can be read, and as many lines can be written. They don't overlap.
#[inline(always)]
pub(super) unsafe fn turn<W: Copy>(to: *mut u8, from: *const u8, step: isize) {
    // SAFETY: the caller's promise.
    unsafe {
        if arch::transpose::<W>(to, from, step) {
            return;
        }
        let side = const { LINE / size_of::<W>() };
        turn_part::<W>(to, from, step, side, side);
    }
}

/// [`turn`] for a part of a square: `from` has `columns` rows of `rows` words each.
///
/// # Safety
/// As for [`turn`], for the part.
#[inline(always)]
pub(super) unsafe fn turn_part<W: Copy>(
    to: *mut u8,
    from: *const u8,
    step: isize,
    rows: usize,
    columns: usize,
) {
    for k in 0..columns {
        for j in 0..rows {
            // SAFETY: the caller's promise.
            unsafe {
                let word = from.offset(k as isize * step).cast::<W>().add(j).read_unaligned();
                to.add(j * LINE).cast::<W>().add(k).write_unaligned(word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turned_squares_are_turned_word_by_word() {
        fn check<W: Copy>() {
            let side = LINE / size_of::<W>();
            let from: Vec<u8> = (0..100 * side).map(|k| (k * 31 + k / 253) as u8).collect();
            for step in [LINE, 71, 100] {
                let (mut whole, mut part) = (vec![0u8; side * LINE], vec![0u8; side * LINE]);
                // SAFETY: `side` rows of one line, at most 100 bytes apart, lie inside of `from`,
                // and `side` lines inside of `whole` and `part`.
                unsafe {
                    turn::<W>(whole.as_mut_ptr(), from.as_ptr(), step as isize);
                    turn_part::<W>(part.as_mut_ptr(), from.as_ptr(), step as isize, side, side);
                }
                assert_eq!(whole, part, "{} bytes", size_of::<W>());
            }
        }
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
        check::<u128>();
    }
}
