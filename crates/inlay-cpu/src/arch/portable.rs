//! The functions of an architecture without code of its own.

use super::simd::Portable;
use super::{IndexBlock, Level, Listed, Loop};

/// The level of the machine.
pub(super) fn detect() -> Level {
    Level::Portable
}

/// Runs a loop at the only level there is.
///
/// # Safety
/// As for [`Loop::run`].
#[inline(always)]
pub(crate) unsafe fn dispatch<L: Loop>(work: L) -> L::Output {
    // SAFETY: the caller's promise.
    unsafe { work.run(Portable) }
}

/// Whether [`super::Simd::widen_halves`] works in vectors at the level in use.
pub(crate) fn widens_halves() -> bool {
    false
}

/// Does nothing: without a prefetch instruction, the hardware prefetcher has to do.
#[inline(always)]
pub(crate) fn prefetch_first(_from: *const u8, _len: usize) {}

/// Does nothing, as [`prefetch_first`].
#[inline(always)]
pub(crate) fn prefetch_second(_from: *const u8, _len: usize) {}

/// Copies `len` bytes, a multiple of the cache line, by ordinary stores.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(crate) unsafe fn stream_lines(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

/// Does nothing: ordinary stores need no fence.
#[inline]
pub(crate) fn fence() {}

/// Lists nothing, so the caller lists all entries.
///
/// # Safety
/// None.
#[inline(always)]
pub(crate) unsafe fn list_owned<const WORDS: bool>(
    _block: IndexBlock,
    _places: *mut u32,
    _beside: *mut u32,
) -> Listed {
    Listed::default()
}
