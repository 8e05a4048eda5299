//! Expansion, compression and filling of contiguous elements by AVX-512 with VBMI2.

use std::arch::x86_64::*;

use crate::arch::{LINE, Level};
use crate::kernels::mask::{Compression, Expansion, Filling, WORD, first};

/// An element as a word of its size, with vector code for the mask kernels.
pub(crate) trait Word: Copy {
    /// Does a contiguous expansion and returns the popcount of its mask. Returns `None`, and does
    /// nothing, if the level has no vector code for it.
    ///
    /// # Safety
    /// As for [`Expansion::run`]; the machine has the level.
    unsafe fn expand(job: &Expansion<'_>, level: Level) -> Option<usize>;

    /// Does a contiguous compression. The result is as for [`Word::expand`].
    ///
    /// # Safety
    /// As for [`Compression::run`]; the machine has the level.
    unsafe fn compress(job: &Compression<'_>, level: Level) -> Option<usize>;

    /// Does a contiguous filling with `value`. Returns false, and does nothing, if the level has no
    /// vector code for it.
    ///
    /// # Safety
    /// All elements can be read and written; the machine has the level.
    unsafe fn fill(job: &Filling, value: Self, level: Level) -> bool;
}

/// The vector code of [`Word`].
///
/// # Safety
/// As for the methods of [`Word`]; the machine has [`Level::Avx512Vbmi2`].
trait Avx512: Copy {
    unsafe fn expand_avx512(job: &Expansion<'_>) -> usize;
    unsafe fn compress_avx512(job: &Compression<'_>) -> usize;
    unsafe fn fill_avx512(job: &Filling, value: Self);
}

/// Implements both traits for a word type. The other arguments are the type of a lane mask, a
/// function that makes a lane mask from the bits of the elements, and the instructions.
macro_rules! vectors {
    ($($W:ty, $mask:ty, $spread:expr, $load:ident, $store:ident, $expand:ident, $compress:ident, $blend:ident;)*) => { $(
        impl Word for $W {
            unsafe fn expand(job: &Expansion<'_>, level: Level) -> Option<usize> {
                // SAFETY: the caller's promise.
                (level >= Level::Avx512Vbmi2).then(|| unsafe { <$W>::expand_avx512(job) })
            }

            unsafe fn compress(job: &Compression<'_>, level: Level) -> Option<usize> {
                // SAFETY: the caller's promise.
                (level >= Level::Avx512Vbmi2).then(|| unsafe { <$W>::compress_avx512(job) })
            }

            unsafe fn fill(job: &Filling, value: $W, level: Level) -> bool {
                let able = level >= Level::Avx512Vbmi2;
                if able {
                    // SAFETY: the caller's promise.
                    unsafe { <$W>::fill_avx512(job, value) };
                }
                able
            }
        }

        impl Avx512 for $W {
            #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
            unsafe fn expand_avx512(job: &Expansion<'_>) -> usize {
                const LANES: usize = LINE / size_of::<$W>();
                let lanes = |bits: u64| -> $mask { ($spread)(bits) };
                let stream = job.stream && job.to.align_offset(LINE) == 0;
                // SAFETY: the caller's promise; masked loads and stores don't access the lanes
                // whose mask bit is 0.
                unsafe {
                    job.each(|to, old, mut from: *const $W, bits, len| {
                        let (to, old) = (to.cast::<$W>(), old.cast::<$W>());
                        for at in (0..len).step_by(LANES) {
                            let true_ones = (bits >> at) & first(LANES);
                            let count = true_ones.count_ones() as usize;
                            let new = $load(lanes(first(count)), from.cast());
                            from = from.add(count);
                            if at + LANES <= len {
                                let old = _mm512_loadu_si512(old.add(at).cast());
                                let all = $expand(old, lanes(true_ones), new);
                                if stream {
                                    _mm512_stream_si512(to.add(at).cast(), all);
                                } else {
                                    _mm512_storeu_si512(to.add(at).cast(), all);
                                }
                            } else {
                                let live = lanes(first(len - at));
                                let old = $load(live, old.add(at).cast());
                                $store(to.add(at).cast(), live, $expand(old, lanes(true_ones), new));
                            }
                        }
                    })
                }
            }

            #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
            unsafe fn compress_avx512(job: &Compression<'_>) -> usize {
                const LANES: usize = LINE / size_of::<$W>();
                let lanes = |bits: u64| -> $mask { ($spread)(bits) };
                // SAFETY: as above.
                unsafe {
                    job.each(|mut to: *mut $W, from, bits, len| {
                        let from = from.cast::<$W>();
                        for at in (0..len).step_by(LANES) {
                            let true_ones = (bits >> at) & first(LANES);
                            let count = true_ones.count_ones() as usize;
                            let live = lanes(first((len - at).min(LANES)));
                            let all = $load(live, from.add(at).cast());
                            let packed = $compress(lanes(true_ones), all);
                            $store(to.cast(), lanes(first(count)), packed);
                            to = to.add(count);
                        }
                    })
                }
            }

            #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
            unsafe fn fill_avx512(job: &Filling, value: $W) {
                const LANES: usize = LINE / size_of::<$W>();
                let lanes = |bits: u64| -> $mask { ($spread)(bits) };
                let (to, old) = (job.to.cast::<$W>(), job.old.cast::<$W>());
                let all = [value; LANES];
                // SAFETY: as above; the array has the size of a vector.
                unsafe {
                    let all = _mm512_loadu_si512(all.as_ptr().cast());
                    for start in (0..job.len).step_by(WORD) {
                        let len = (job.len - start).min(WORD);
                        let bools = job.mask.add(start).cast();
                        let bools = _mm512_maskz_loadu_epi8(first(len), bools);
                        let bits = _mm512_test_epi8_mask(bools, bools);
                        for at in (0..len).step_by(LANES) {
                            let chosen = lanes((bits >> at) & first(LANES));
                            let (to, old) = (to.add(start + at), old.add(start + at));
                            if at + LANES <= len {
                                let old = _mm512_loadu_si512(old.cast());
                                _mm512_storeu_si512(to.cast(), $blend(chosen, old, all));
                            } else {
                                let live = lanes(first(len - at));
                                let old = $load(live, old.cast());
                                $store(to.cast(), live, $blend(chosen, old, all));
                            }
                        }
                    }
                }
            }
        }
    )* };
}
vectors!(
    u8, __mmask64, |bits| bits,
        _mm512_maskz_loadu_epi8, _mm512_mask_storeu_epi8, _mm512_mask_expand_epi8, _mm512_maskz_compress_epi8, _mm512_mask_blend_epi8;
    u16, __mmask32, |bits| bits as u32,
        _mm512_maskz_loadu_epi16, _mm512_mask_storeu_epi16, _mm512_mask_expand_epi16, _mm512_maskz_compress_epi16, _mm512_mask_blend_epi16;
    u32, __mmask16, |bits| bits as u16,
        _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32, _mm512_mask_expand_epi32, _mm512_maskz_compress_epi32, _mm512_mask_blend_epi32;
    u64, __mmask8, |bits| bits as u8,
        _mm512_maskz_loadu_epi64, _mm512_mask_storeu_epi64, _mm512_mask_expand_epi64, _mm512_maskz_compress_epi64, _mm512_mask_blend_epi64;
    // An element is two lanes.
    u128, __mmask8, |bits| (_pdep_u64(bits, 0x55) * 3) as u8,
        _mm512_maskz_loadu_epi64, _mm512_mask_storeu_epi64, _mm512_mask_expand_epi64, _mm512_maskz_compress_epi64, _mm512_mask_blend_epi64;
);
const _: () = assert!(WORD.is_multiple_of(LINE));
