//! Transposes squares of words whose sides are one cache line, by SSE2.

use std::arch::x86_64::*;

use crate::arch::LINE;

type Vector = __m128i;

/// Transposes a square of words whose rows are one cache line long: the rows at `from`, `step`
/// bytes apart, become the columns of the contiguous lines at `to`. Returns false, and does
/// nothing, for words of 16 bytes.
///
/// # Safety
/// The square can be read, and as many lines can be written. They don't overlap.
#[inline(always)]
pub(crate) unsafe fn transpose<W: Copy>(to: *mut u8, from: *const u8, step: isize) -> bool {
    // SAFETY: the caller's promise; every x86-64 processor has SSE2.
    unsafe {
        match size_of::<W>() {
            1 => vectors::<16>(to, from, step, |a, b| {
                (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b))
            }),
            2 => vectors::<8>(to, from, step, |a, b| {
                (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b))
            }),
            4 => vectors::<4>(to, from, step, |a, b| {
                (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b))
            }),
            8 => vectors::<2>(to, from, step, |a, b| {
                (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b))
            }),
            _ => return false,
        }
    }
    true
}

/// Transposes blocks of `N` vectors of `N` words. `unpack` interleaves two vectors. (Word by word,
/// a copy of the transpose of 2048 x 2048 `f32` takes 1.6 times as long.)
///
/// # Safety
/// As for [`transpose`].
#[inline(always)]
unsafe fn vectors<const N: usize>(
    to: *mut u8,
    from: *const u8,
    step: isize,
    unpack: impl Fn(Vector, Vector) -> (Vector, Vector),
) {
    const WIDE: usize = size_of::<Vector>();
    let side = const { LINE / WIDE * N };
    for column in (0..side).step_by(N) {
        for part in 0..LINE / WIDE {
            // SAFETY: the caller's promise; every x86-64 processor has SSE2.
            unsafe {
                let from = from.offset(column as isize * step).add(part * WIDE);
                // Plain loops, which the compiler unrolls, so that the block stays in registers. It
                // may call the closure of a `from_fn` of 16 vectors instead. (Transpose of 2048 x
                // 2048 bytes: 0.3 ms instead of 1.4.)
                let mut block = [_mm_setzero_si128(); N];
                for (k, vector) in block.iter_mut().enumerate() {
                    *vector = _mm_loadu_si128(from.offset(k as isize * step).cast());
                }
                // Interleaving the first half with the second log2(N) times turns rows into
                // columns.
                for _ in 0..N.ilog2() {
                    let rows = block;
                    for k in 0..N / 2 {
                        (block[2 * k], block[2 * k + 1]) = unpack(rows[k], rows[k + N / 2]);
                    }
                }
                let to = to.add(part * N * LINE).add(column * (WIDE / N));
                for (k, row) in block.into_iter().enumerate() {
                    _mm_storeu_si128(to.add(k * LINE).cast(), row);
                }
            }
        }
    }
}
