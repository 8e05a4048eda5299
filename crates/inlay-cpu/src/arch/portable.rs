//! The functions of an architecture without code of its own.

use super::simd::Portable;
use super::{IndexBlock, Level, Listed, Loop};
use crate::kernels::mask::{Compression, Expansion, Filling};

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

/// Reads the first entries of an index of an axis of `size`: `to` takes their positions from the front, or
/// 0 for an entry that is out of range. Gives how many were read, here none, and whether all of them
/// are in range.
///
/// # Safety
/// None.
#[inline(always)]
pub(crate) unsafe fn read_places(
    _to: &mut [i64],
    _from: *const i64,
    _size: usize,
) -> (usize, bool) {
    (0, true)
}

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

/// The word of an element. There is no vector code for masks.
pub(crate) trait Word: Copy {
    /// Nothing is done.
    ///
    /// # Safety
    /// None.
    unsafe fn expand(_job: &Expansion<'_>, _level: Level) -> Option<usize> {
        None
    }

    /// Nothing is done.
    ///
    /// # Safety
    /// None.
    unsafe fn compress(_job: &Compression<'_>, _level: Level) -> Option<usize> {
        None
    }

    /// Nothing is done.
    ///
    /// # Safety
    /// None.
    unsafe fn fill(_job: &Filling, _value: Self, _level: Level) -> bool {
        false
    }
}

impl<W: Copy> Word for W {}

/// A bit for each of 64 bytes: whether it is not 0.
///
/// # Safety
/// 64 bytes can be read.
pub(crate) unsafe fn pack(from: *const u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let mut bits = 0;
    for k in 0..8 {
        // SAFETY: the caller's promise.
        let bytes = u64::from_le_bytes(unsafe { from.add(8 * k).cast::<[u8; 8]>().read() });
        // The top bit of each byte that is not 0: the sum carries into it unless the rest is 0.
        let top = (((bytes & LOW) + LOW) | bytes) & !LOW;
        // The product brings the eight top bits side by side into its top byte.
        bits |= ((top >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * k);
    }
    bits
}

/// Transposes nothing, and says so.
///
/// # Safety
/// None.
#[expect(clippy::extra_unused_type_parameters, reason = "other architectures use it")]
#[inline(always)]
pub(crate) unsafe fn transpose<W: Copy>(_to: *mut u8, _from: *const u8, _step: isize) -> bool {
    false
}
