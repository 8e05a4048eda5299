//! Copies a view to another view of the same shape.

use super::tiles::Tiles;
use crate::number::dispatch_width;
use crate::stream;
use crate::tuning::STREAM;
use crate::view::Target;
use crate::walk::Walk;
use crate::{Dst, Src, threads};

/// Runs shorter than this many bytes gain nothing from non-temporal stores, because the incomplete
/// lines at their ends are written by ordinary stores.
const STREAMED_RUN: usize = 512;

/// Copies by tiles use non-temporal stores for results that are smaller by this factor, because the
/// lines of a tile are far apart in memory. (Transposes on one core: 4 MiB take 0.4 ms by both
/// kinds of stores, 16 MiB take 2.4 ms by ordinary and 1.8 ms by non-temporal stores, 64 MiB take
/// 15 ms and 7 ms.)
const STREAMED_TILES: usize = 4;

/// How the elements of a call are copied.
#[expect(clippy::large_enum_variant, reason = "there is one per call, and it is not moved")]
enum Strategy {
    /// Run by run, by ascending addresses of the destination.
    Runs,
    /// Run by run, with non-temporal stores.
    Streamed,
    /// Tile by tile, through a buffer, because runs that are contiguous in one view are strided in
    /// the other.
    Tiles(Tiles),
}

/// Contiguous views of up to this many bytes are copied without a walk, which would take longer
/// than the copy.
const SMALL: usize = 4 << 10;

/// Writes every element of `src` to the same index of `dst`.
///
/// # Panics
/// When the views overlap, or differ in shape or element size.
pub fn copy(dst: Dst<'_>, src: Src<'_>) {
    copy_to(dst.into_target(), src);
}

/// [`copy`] for kernels. The caller guarantees that no other thread writes the target.
pub(super) fn copy_to(dst: Target<'_>, src: Src<'_>) {
    copy_with(STREAM.get(), dst, src);
}

/// [`copy_to`] with non-temporal stores for results of at least `stream` bytes.
pub(super) fn copy_with(stream: usize, dst: Target<'_>, src: Src<'_>) {
    dst.expect_apart(&src);
    let size = dst.same_size(&src);
    let bytes = dst.layout().numel() * size;
    let (to, from) = (dst.layout(), src.layout());
    if bytes <= SMALL && to.is_contiguous(size) && from.is_contiguous(size) {
        assert_eq!(to.shape(), from.shape(), "layouts of one shape");
        // SAFETY: both views are contiguous, have one shape and one element size, and don't
        // overlap, as was just checked.
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
                // SAFETY: the walk stays inside of both layouts. The views don't overlap and have
                // elements of one size, as was checked above. Threads have different ranges of the
                // walk, and no two elements of a destination overlap.
                unsafe {
                    let (to, from) = (dst.origin().offset(to), src.origin().offset(from));
                    stream::copy(to, from, run.len * size);
                }
            });
            stream::fence();
        }),
        Strategy::Runs => dispatch_width!(size, W => walk.parallel(2 * size, |run| {
            let [to, from] = run.offsets;
            // SAFETY: as above.
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

/// Copies `len` equally spaced words to equally spaced addresses.
///
/// # Safety
/// All of the words can be read and written, and no source overlaps a destination.
#[inline]
pub(super) unsafe fn move_run<W: Copy>(
    to: *mut u8,
    to_stride: isize,
    from: *const u8,
    from_stride: isize,
    len: usize,
) {
    let size = size_of::<W>() as isize;
    // SAFETY: the caller's promise; no access needs an alignment.
    unsafe {
        if to_stride == size && from_stride == size {
            std::ptr::copy_nonoverlapping(from, to, len * size as usize);
        } else if from_stride == 0 && len > 0 {
            let word = from.cast::<W>().read_unaligned();
            fill_run(to, to_stride, word, len);
        } else if to_stride == size && from_stride == 2 * size {
            // Every other word, and below words in reverse: the compiler can vectorize loops with
            // constant strides.
            for k in 0..len {
                let word = from.cast::<W>().add(2 * k).read_unaligned();
                to.cast::<W>().add(k).write_unaligned(word);
            }
        } else if to_stride == size && from_stride == -size {
            for k in 0..len {
                let word = from.cast::<W>().sub(k).read_unaligned();
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

/// Writes `word` to `len` equally spaced addresses.
///
/// # Safety
/// All of the words can be written.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_run_reads_nothing() {
        let nowhere = std::ptr::without_provenance_mut(16);
        for (to_stride, from_stride) in [(4, 4), (4, 0), (4, 8), (8, 12)] {
            // SAFETY: there are no words.
            unsafe { move_run::<u32>(nowhere, to_stride, nowhere, from_stride, 0) };
        }
    }
}
