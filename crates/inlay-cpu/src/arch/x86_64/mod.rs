//! x86-64: detection of the level, the entry points of the levels, and primitives that need only
//! SSE2.

mod listing;
mod masks;
mod places;
mod transpose;

use std::arch::x86_64::{
    __m128i, _MM_HINT_T0, _MM_HINT_T1, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8,
    _mm_prefetch, _mm_setzero_si128, _mm_sfence, _mm_stream_si128, _mm256_cvtph_ps,
    _mm256_storeu_ps,
};

use half::f16;

use super::simd::Portable;
use super::{LINE, Level, Loop, Simd, level};
pub(crate) use listing::list_owned;
pub(crate) use masks::Word;
pub(crate) use places::read_places;
pub(crate) use transpose::transpose;

/// Returns the highest level that the machine has.
pub(super) fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (_, true) if is_x86_feature_detected!("avx512vbmi2") => Level::Avx512Vbmi2,
        (_, true) => Level::Avx512,
        (true, _) => Level::Avx2,
        _ => Level::Portable,
    }
}

/// The token of AVX2 and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Simd for Avx2 {
    // Eight registers of 32 bytes.
    const ACCUMULATORS: usize = 256;

    #[inline(always)]
    fn widen_halves<const N: usize>(self, values: [f16; N]) -> [f32; N] {
        // SAFETY: the token proves that the machine has F16C.
        unsafe { widen_f16c(&values) }
    }
}

/// # Safety
/// The machine has F16C.
#[target_feature(enable = "avx,f16c")]
#[inline]
unsafe fn widen_f16c<const N: usize>(values: &[f16; N]) -> [f32; N] {
    const { assert!(N.is_multiple_of(8), "whole vectors") };
    let mut wide = [0.0; N];
    let (from, _) = values.as_chunks::<8>();
    let (to, _) = wide.as_chunks_mut::<8>();
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: both arrays have eight numbers.
        unsafe {
            let eight = _mm_loadu_si128(from.as_ptr().cast());
            _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(eight));
        }
    }
    wide
}

/// Runs a loop compiled for AVX2 and F16C if the current level has them, otherwise the portable
/// one.
///
/// # Safety
/// As for [`Loop::run`].
#[inline(always)]
pub(crate) unsafe fn dispatch<L: Loop>(work: L) -> L::Output {
    // SAFETY: the caller's promise; the machine has the current level.
    unsafe { if level() >= Level::Avx2 { avx2(work) } else { work.run(Portable) } }
}

/// # Safety
/// As for [`Loop::run`], and the machine has AVX2 and F16C.
#[target_feature(enable = "avx2,f16c")]
unsafe fn avx2<L: Loop>(work: L) -> L::Output {
    // SAFETY: the caller's promise.
    unsafe { work.run(Avx2(())) }
}

/// Returns whether [`Simd::widen_halves`] uses vector instructions at the current level.
#[inline]
pub(crate) fn widens_halves() -> bool {
    level() >= Level::Avx2
}

/// Prefetches `len` bytes into the first-level cache. Any address is allowed.
#[inline(always)]
pub(crate) fn prefetch_first(from: *const u8, len: usize) {
    prefetch::<_MM_HINT_T0>(from, len);
}

/// Prefetches `len` bytes into the second-level cache. Any address is allowed.
#[inline(always)]
pub(crate) fn prefetch_second(from: *const u8, len: usize) {
    prefetch::<_MM_HINT_T1>(from, len);
}

#[inline(always)]
fn prefetch<const HINT: i32>(from: *const u8, len: usize) {
    // SAFETY: a prefetch is a hint and never faults.
    let line = |by: usize| unsafe { _mm_prefetch::<HINT>(from.wrapping_add(by).cast()) };
    for by in (0..len).step_by(LINE) {
        line(by);
    }
    // Bytes that do not begin at a cache line end in one more. NumPy aligns arrays to 16 bytes. (Sums
    // of 1M rows of 256 bytes from such an array on two threads: 21 ms, 31 ms without this line.)
    if len > 1 {
        line(len - 1);
    }
}

/// Copies `len` bytes by non-temporal stores. `to` and `len` are multiples of [`LINE`].
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(crate) unsafe fn stream_lines(to: *mut u8, from: *const u8, len: usize) {
    for at in (0..len).step_by(LINE) {
        // SAFETY: the caller's promise; every x86-64 processor has SSE2.
        unsafe {
            let (to, from) = (to.add(at).cast::<__m128i>(), from.add(at).cast::<__m128i>());
            for part in 0..LINE / size_of::<__m128i>() {
                _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part)));
            }
        }
    }
}

/// Orders the non-temporal stores of this thread before its later stores.
#[inline]
pub(crate) fn fence() {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { _mm_sfence() };
}

/// Returns a bitmap of 64 bytes: a bit is set if its byte is not 0.
///
/// # Safety
/// 64 bytes can be read.
#[inline]
pub(crate) unsafe fn pack(from: *const u8) -> u64 {
    let mut zeros = 0;
    for k in 0..4 {
        // SAFETY: the caller's promise; every x86-64 processor has SSE2.
        let equal = unsafe {
            let bytes = _mm_loadu_si128(from.add(16 * k).cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()))
        };
        zeros |= u64::from(equal as u16) << (16 * k);
    }
    !zeros
}
