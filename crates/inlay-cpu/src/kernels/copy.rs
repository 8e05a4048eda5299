//! Copies a view to a view of the same shape.

use super::tiles::Tiles;
use crate::number::dispatch_width;
use crate::stream;
use crate::tuning::STREAM;
use crate::walk::Walk;
use crate::{Dst, Src, threads};

/// Shorter runs than this gain nothing from being streamed: their ends are ordinary writes.
const STREAMED_RUN: usize = 512;

/// Squares are streamed from this part of the size on, for the lines of one lie far apart. On one core,
/// the transpose of 4 MiB takes 0.4 ms both ways, of 16 MiB 2.4 and 1.8 ms, of 64 MiB 15 and 7.
const STREAMED_TILES: usize = 4;

/// How a copy goes.
#[expect(clippy::large_enum_variant, reason = "there is one a call, and it is not moved")]
enum Strategy {
    /// Run by run, in the order of the destination.
    Runs,
    /// Long runs, past the caches.
    Streamed,
    /// The runs of one side jump through the other: square by square, through a buffer.
    Tiles(Tiles),
}

/// Bytes up to which a copy without gaps needs no walk: one thread makes it, faster than a walk is
/// planned.
const SMALL: usize = 4 << 10;

/// Writes every element of `src` to the same index of `dst`.
pub fn copy(dst: Dst<'_>, src: Src<'_>) {
    copy_with(STREAM.get(), dst, src);
}

/// [`copy`], streaming results of at least `stream` bytes.
pub(super) fn copy_with(stream: usize, dst: Dst<'_>, src: Src<'_>) {
    dst.expect_apart(&src);
    let size = dst.same_size(&src);
    let bytes = dst.layout().numel() * size;
    let (to, from) = (dst.layout(), src.layout());
    if bytes <= SMALL && to.is_contiguous(size) && from.is_contiguous(size) {
        assert_eq!(to.shape(), from.shape(), "layouts of one shape");
        // SAFETY: both views have so many bytes without gaps, and lie apart.
        unsafe { std::ptr::copy_nonoverlapping(src.origin(), dst.origin(), bytes) };
        return;
    }
    let walk = Walk::in_memory_order([dst.layout(), src.layout()]);
    let streams = walk.len().saturating_mul(size) >= stream;
    match strategy(&walk, size, streams) {
        Strategy::Tiles(tiles) => {
            let streams = bytes >= stream / STREAMED_TILES;
            dispatch_width!(size, W => tiles.copy::<W>(dst, src, streams));
        }
        Strategy::Streamed => threads::split(walk.len(), 2 * size, |range| {
            walk.runs(range, |run| {
                let [to, from] = run.offsets;
                // SAFETY: the walk stays inside of both layouts, which lie apart.
                unsafe {
                    let (to, from) = (dst.origin().offset(to), src.origin().offset(from));
                    stream::copy(to, from, run.len * size);
                }
            });
            stream::fence();
        }),
        Strategy::Runs => dispatch_width!(size, W => walk.parallel(2 * size, |run| {
            let [to, from] = run.offsets;
            // SAFETY: the walk stays inside of both layouts, which lie apart.
            unsafe {
                move_run::<W>(
                    dst.origin().offset(to), run.strides[0],
                    src.origin().offset(from), run.strides[1], run.len,
                );
            }
        })),
    }
}

fn strategy(walk: &Walk<2>, size: usize, streams: bool) -> Strategy {
    if walk.run_strides() == [size as isize; 2] {
        let long = walk.run_len().saturating_mul(size) >= STREAMED_RUN;
        return if long && streams { Strategy::Streamed } else { Strategy::Runs };
    }
    Tiles::of(walk, size).map_or(Strategy::Runs, Strategy::Tiles)
}

/// Moves `len` words from equally spaced places to equally spaced places.
///
/// # Safety
/// All of them can be read and written, and no source is a destination.
#[inline]
pub(super) unsafe fn move_run<W: Copy>(
    to: *mut u8,
    to_stride: isize,
    from: *const u8,
    from_stride: isize,
    len: usize,
) {
    let size = size_of::<W>() as isize;
    // SAFETY: the caller's promise; unaligned access asks for no alignment.
    unsafe {
        if to_stride == size && from_stride == size {
            std::ptr::copy_nonoverlapping(from, to, len * size as usize);
        } else if from_stride == 0 {
            let word = from.cast::<W>().read_unaligned();
            fill_run(to, to_stride, word, len);
        } else if to_stride == size && from_stride == 2 * size {
            // Every other word: a constant step becomes vectors.
            for k in 0..len {
                let word = from.cast::<W>().add(2 * k).read_unaligned();
                to.cast::<W>().add(k).write_unaligned(word);
            }
        } else {
            for k in 0..len as isize {
                let word = from.offset(k * from_stride).cast::<W>().read_unaligned();
                to.offset(k * to_stride).cast::<W>().write_unaligned(word);
            }
        }
    }
}

/// Writes `word` to `len` equally spaced places.
///
/// # Safety
/// All of them can be written.
#[inline]
pub(super) unsafe fn fill_run<W: Copy>(to: *mut u8, to_stride: isize, word: W, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if to_stride == size_of::<W>() as isize {
            for k in 0..len {
                to.cast::<W>().add(k).write_unaligned(word);
            }
        } else {
            for k in 0..len as isize {
                to.offset(k * to_stride).cast::<W>().write_unaligned(word);
            }
        }
    }
}
