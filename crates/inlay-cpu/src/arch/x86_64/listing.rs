//! Lists the entries of an index that name a place of a range, eight at a time by AVX-512.

use std::arch::x86_64::*;

use super::prefetch_first;
use crate::arch::{IndexBlock, Level, Listed, level};

/// Lists the entries of a block that name a place of `own`. For each it writes two 32-bit words to
/// `to`: the place, relative to the start of the range, and the number of the entry in the block,
/// or with `WORDS` its data, which is a 32-bit word. It reads whole vectors of eight entries, and
/// none below AVX-512.
///
/// # Safety
/// The index values can be read. With `WORDS`, a word for each value can be read at `data`. The
/// list has room for one element per value and 8 more.
#[inline(always)]
pub(crate) unsafe fn list_owned<const WORDS: bool>(block: IndexBlock, to: *mut [u32; 2]) -> Listed {
    if level() < Level::Avx512 {
        return Listed::default();
    }
    // SAFETY: the caller's promise; the machine has the current level.
    unsafe { list_avx512::<WORDS>(&block, to) }
}

/// # Safety
/// As for [`list_owned`], and the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
unsafe fn list_avx512<const WORDS: bool>(block: &IndexBlock, to: *mut [u32; 2]) -> Listed {
    let IndexBlock { values, len, size, ref own, data: (data, step), next } = *block;
    let done = len / 8 * 8;
    let (size, first) = (_mm512_set1_epi64(size as i64), _mm512_set1_epi64(own.start as i64));
    let count = _mm512_set1_epi64(own.len() as i64);
    let mut numbers = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    let (mut len, mut outside) = (0, 0);
    for k in (0..done).step_by(8) {
        // SAFETY: `k + 8` is at most the number of values, and of words with `WORDS`. At most `k`
        // entries were listed, so eight more fit into the list.
        unsafe {
            // Another thread may change the values, so each is loaded once, and one register is
            // both checked and used. An entry is listed only if `local`, which is stored, is below
            // `count`.
            let value = _mm512_loadu_si512(values.add(k).cast());
            // Words are used here, so those of the next block are prefetched. Other data is used
            // after this block is listed, so that of this block is prefetched.
            let data_ahead = if WORDS { next } else { 0 };
            prefetch_first(data.wrapping_offset((data_ahead + k) as isize * step), 1);
            prefetch_first(values.wrapping_add(next + k).cast(), 1);
            let negative = _mm512_movepi64_mask(value);
            let at = _mm512_mask_add_epi64(value, negative, value, size);
            outside |= _mm512_cmpge_epu64_mask(at, size);
            let local = _mm512_sub_epi64(at, first);
            let owned = _mm512_cmplt_epu64_mask(local, count);
            let beside = match WORDS {
                true => _mm512_cvtepu32_epi64(_mm256_loadu_si256(data.cast::<u32>().add(k).cast())),
                false => numbers,
            };
            let both = _mm512_or_si512(local, _mm512_slli_epi64(beside, 32));
            _mm512_storeu_si512(to.add(len).cast(), _mm512_maskz_compress_epi64(owned, both));
            len += owned.count_ones() as usize;
            numbers = _mm512_add_epi64(numbers, _mm512_set1_epi64(8));
        }
    }
    Listed { done, len, outside: outside != 0 }
}
