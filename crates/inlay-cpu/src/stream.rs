//! Writes that go past the caches, for results that would not stay in them.
//!
//! An ordinary store first reads the line that it is about to overwrite; one that streams does not.
//! That is a third of the traffic of a copy, but nobody finds the result in a cache afterwards.

/// Results of at least so many bytes are streamed. Copies on two cores with 32 MiB of shared cache:
/// of 16 MiB in 0.43 ms and streamed in 0.65; of 32 MiB in 1.3 both ways, and on one core in 1.9
/// and 1.5; of 64 MiB in 3.4 and 2.6. Fills gain nothing at any size: 64 MiB in 1.8 and 2.4 ms. Tests are
/// built for smaller tensors, some of which are to be streamed as well.
pub(crate) const STREAM: usize = if cfg!(debug_assertions) { 64 << 10 } else { 32 << 20 };

/// A cache line, and what is streamed at a time.
pub(crate) const LINE: usize = 64;

/// Copies `len` bytes past the caches; the lines at the ends that belong to others too, as usual.
/// Whoever calls it calls [`fence`] before another thread may look.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    let head = to.align_offset(LINE).min(len);
    let body = (len - head) / LINE * LINE;
    // SAFETY: the caller's promise; head, body and the rest are the whole.
    unsafe {
        if head > 0 {
            std::ptr::copy_nonoverlapping(from, to, head);
        }
        lines(to.add(head), from.add(head), body);
        let done = head + body;
        if done < len {
            std::ptr::copy_nonoverlapping(from.add(done), to.add(done), len - done);
        }
    }
}

/// # Safety
/// As for [`copy`]; `to` and `len` are multiples of [`LINE`].
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn lines(to: *mut u8, from: *const u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    for at in (0..len).step_by(LINE) {
        // SAFETY: the caller's promise; every x86-64 has these instructions.
        unsafe {
            let (to, from) = (to.add(at).cast::<__m128i>(), from.add(at).cast::<__m128i>());
            for part in 0..LINE / size_of::<__m128i>() {
                _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part)));
            }
        }
    }
}

/// # Safety
/// As for [`copy`].
#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn lines(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

/// Orders what this thread has streamed before whatever it writes next.
#[inline]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streamed_copy_is_a_copy() {
        let from: Vec<u8> = (0..700u32).map(|k| (k * 7 + k / 256) as u8).collect();
        for (start, skip) in [(0, 0), (1, 0), (63, 5), (64, 3), (17, 17)] {
            for len in [0, 1, 46, 47, 63, 64, 65, 128, 200, 600] {
                let mut to = vec![0u8; 800];
                // SAFETY: both ranges lie inside of their vectors.
                unsafe { copy(to.as_mut_ptr().add(start), from.as_ptr().add(skip), len) };
                fence();
                assert_eq!(to[start..start + len], from[skip..skip + len]);
                assert!(to[..start].iter().chain(&to[start + len..]).all(|&byte| byte == 0));
            }
        }
    }
}
