//! Copies by non-temporal stores, for results that the caches can't hold.
//!
//! An ordinary store first reads the cache line that it overwrites. A non-temporal store does not,
//! which saves a third of the memory traffic of a copy. But the result is not in a cache
//! afterwards.

use crate::arch::stream_lines;
pub(crate) use crate::arch::{LINE, fence};

/// Copies `len` bytes by non-temporal stores. Incomplete cache lines at both ends are copied by
/// ordinary stores. The caller calls [`fence`] before another thread may read the result.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    let head = to.align_offset(LINE).min(len);
    let body = (len - head) / LINE * LINE;
    // SAFETY: the caller's promise; the head, the body and the rest together are the `len` bytes.
    unsafe {
        if head > 0 {
            std::ptr::copy_nonoverlapping(from, to, head);
        }
        stream_lines(to.add(head), from.add(head), body);
        let done = head + body;
        if done < len {
            std::ptr::copy_nonoverlapping(from.add(done), to.add(done), len - done);
        }
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
