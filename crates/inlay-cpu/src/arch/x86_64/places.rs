//! Reads and checks the positions that the entries of an index name, four at a time by AVX2.

use std::arch::x86_64::*;

use crate::arch::{Level, level};

/// Reads and checks the first entries at `from`, as described at
/// [`super::super::portable::read_places`]. It reads whole vectors of four entries, and none below
/// AVX2.
///
/// # Safety
/// As many entries as `to` has can be read.
#[inline]
pub(crate) unsafe fn read_places(to: &mut [i64], from: *const i64, size: usize) -> (usize, bool) {
    if level() < Level::Avx2 {
        return (0, true);
    }
    // SAFETY: the caller's promise; the machine has the current level.
    unsafe { read_avx2(to, from, size) }
}

/// # Safety
/// As for [`read_places`], and the machine has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn read_avx2(to: &mut [i64], from: *const i64, size: usize) -> (usize, bool) {
    const LANES: usize = 4;
    let (vectors, _) = to.as_chunks_mut::<LANES>();
    let (zero, axis) = (_mm256_setzero_si256(), _mm256_set1_epi64x(size as i64));
    let last = _mm256_set1_epi64x((size as i64).wrapping_sub(1));
    let mut outside = zero;
    let done = vectors.len() * LANES;
    for (k, to) in vectors.iter_mut().enumerate() {
        // SAFETY: the caller's promise. Another thread may change the entries, so each is loaded
        // once, and one register is both checked and stored.
        unsafe {
            let value = _mm256_loadu_si256(from.add(k * LANES).cast());
            let negative = _mm256_cmpgt_epi64(zero, value);
            let at = _mm256_add_epi64(value, _mm256_and_si256(negative, axis));
            // If a position is out of range, either it or its distance from the last position is
            // negative.
            let sign = _mm256_or_si256(at, _mm256_sub_epi64(last, at));
            let wrong = _mm256_cmpgt_epi64(zero, sign);
            outside = _mm256_or_si256(outside, wrong);
            _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_andnot_si256(wrong, at));
        }
    }
    (done, _mm256_testz_si256(outside, outside) == 1)
}
