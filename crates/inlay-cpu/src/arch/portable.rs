//! The functions of [`super`] for architectures that have no module of their own.

use super::simd::Portable;
use super::{IndexBlock, Level, Listed, Loop};
use crate::kernels::mask::{Compression, Expansion, Filling};

/// Returns the level of the machine.
pub(super) fn detect() -> Level {
    Level::Portable
}

/// Runs a loop at the portable level.
///
/// # Safety
/// As for [`Loop::run`].
#[inline(always)]
pub(crate) unsafe fn dispatch<L: Loop>(work: L) -> L::Output {
    // SAFETY: the caller's promise.
    unsafe { work.run(Portable) }
}

/// Returns whether [`super::Simd::widen_halves`] uses vector instructions at the current level.
pub(crate) fn widens_halves() -> bool {
    false
}

/// Does nothing, because there is no portable prefetch instruction.
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

/// Reads the first entries of an index on an axis of `size`. Writes to `to` the position of each
/// entry, counted from the front, or 0 if it is out of range. Returns how many entries were read
/// (here none), and whether all of them are in range.
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

/// Lists nothing. The caller lists all entries.
///
/// # Safety
/// None.
#[inline(always)]
pub(crate) unsafe fn list_owned<const WORDS: bool>(
    _block: IndexBlock,
    _to: *mut [u32; 2],
) -> Listed {
    Listed::default()
}

/// An element as a word of its size. There is no vector code for masks, so no method does anything.
pub(crate) trait Word: Copy {
    /// Does nothing and returns `None`.
    ///
    /// # Safety
    /// None.
    unsafe fn expand(_job: &Expansion<'_>, _level: Level) -> Option<usize> {
        None
    }

    /// Does nothing and returns `None`.
    ///
    /// # Safety
    /// None.
    unsafe fn compress(_job: &Compression<'_>, _level: Level) -> Option<usize> {
        None
    }

    /// Does nothing and returns false.
    ///
    /// # Safety
    /// None.
    unsafe fn fill(_job: &Filling, _value: Self, _level: Level) -> bool {
        false
    }
}

impl<W: Copy> Word for W {}

/// Returns a bitmap of 64 bytes: a bit is set if its byte is not 0.
///
/// # Safety
/// 64 bytes can be read.
pub(crate) unsafe fn pack(from: *const u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let mut bits = 0;
    for k in 0..8 {
        // SAFETY: the caller's promise.
        let bytes = u64::from_le_bytes(unsafe { from.add(8 * k).cast::<[u8; 8]>().read() });
        // Sets the top bit of each byte that is not 0. The sum carries into it unless the lower
        // bits are 0.
        let top = (((bytes & LOW) + LOW) | bytes) & !LOW;
        // The multiplication gathers these eight bits in the top byte of the product.
        bits |= ((top >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * k);
    }
    bits
}

/// Does nothing and returns false. The caller transposes.
///
/// # Safety
/// None.
#[expect(clippy::extra_unused_type_parameters, reason = "other architectures use it")]
#[inline(always)]
pub(crate) unsafe fn transpose<W: Copy>(_to: *mut u8, _from: *const u8, _step: isize) -> bool {
    false
}
