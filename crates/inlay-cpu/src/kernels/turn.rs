//! Turns squares of words: what were rows become columns.

use crate::stream::LINE;

/// Turns a square that is a line wide on both sides: the rows at `from`, `step` bytes apart, become the
/// columns of the lines at `to`, which follow each other.
///
/// # Safety
/// The square can be read, as many lines can be written, and they lie apart.
#[inline(always)]
pub(super) unsafe fn turn<W: Copy>(to: *mut u8, from: *const u8, step: isize) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::*;
            match size_of::<W>() {
                1 => {
                    return vectors::<16>(to, from, step, |a, b| {
                        (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b))
                    });
                }
                2 => {
                    return vectors::<8>(to, from, step, |a, b| {
                        (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b))
                    });
                }
                4 => {
                    return vectors::<4>(to, from, step, |a, b| {
                        (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b))
                    });
                }
                8 => {
                    return vectors::<2>(to, from, step, |a, b| {
                        (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b))
                    });
                }
                _ => {}
            }
        }
        let side = const { LINE / size_of::<W>() };
        turn_part::<W>(to, from, step, side, side);
    }
}

/// [`turn`] for a part of a square: `columns` rows of `rows` words.
///
/// # Safety
/// As there, for the part.
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

/// [`turn`] by blocks of `N` vectors of `N` words, of which `unpack` interleaves two. Word by word, a
/// copy of the transpose of 2048x2048 f32 took 1.6 times as long.
///
/// # Safety
/// As there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn vectors<const N: usize>(
    to: *mut u8,
    from: *const u8,
    step: isize,
    unpack: impl Fn(Vector, Vector) -> (Vector, Vector),
) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_storeu_si128};
    const WIDE: usize = size_of::<Vector>();
    let side = const { LINE / WIDE * N };
    for column in (0..side).step_by(N) {
        for part in 0..LINE / WIDE {
            // SAFETY: the caller's promise; every x86-64 has these instructions.
            unsafe {
                let from = from.offset(column as isize * step).add(part * WIDE);
                let mut block: [Vector; N] =
                    std::array::from_fn(|k| _mm_loadu_si128(from.offset(k as isize * step).cast()));
                // To interleave the first half with the second, as often as halves can be
                // halved, leaves columns.
                for _ in 0..N.ilog2() {
                    block = std::array::from_fn(|k| {
                        let (low, high) = unpack(block[k / 2], block[k / 2 + N / 2]);
                        if k % 2 == 0 { low } else { high }
                    });
                }
                let to = to.add(part * N * LINE).add(column * (WIDE / N));
                for (k, row) in block.into_iter().enumerate() {
                    _mm_storeu_si128(to.add(k * LINE).cast(), row);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
type Vector = std::arch::x86_64::__m128i;

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
                // SAFETY: so many rows lie inside, and so many lines.
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
