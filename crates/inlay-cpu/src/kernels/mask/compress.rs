//! Compression: copies the elements for which a mask is true, in order, to a contiguous
//! destination.

use super::{Bits, Piece, is_strided, pieces};
use crate::arch::{self, LINE, Level, Word};
use crate::kernels::copy::move_run;
use crate::number::dispatch_width;
use crate::tuning::COMPRESS_SPARSE;
use crate::walk::Run;
use crate::{Dst, Src};

/// Writes the elements of `src` whose bits are set, in row-major order, to `dst`. `dst` is
/// contiguous and has exactly as many elements.
///
/// # Panics
/// When `dst` is not contiguous or has another number of elements, when `src` has not one element
/// for each bit, when the views overlap, or when element sizes differ.
pub fn compress(dst: Dst<'_>, src: Src<'_>, bits: &Bits) {
    compress_with(arch::level(), dst, src, bits);
}

/// [`compress`] at `level`.
pub(super) fn compress_with(level: Level, dst: Dst<'_>, src: Src<'_>, bits: &Bits) {
    let dst = dst.into_target();
    dst.expect_apart(&src);
    let size = dst.same_size(&src);
    let exact = dst.layout().is_contiguous(size) && dst.layout().numel() == bits.ones();
    assert!(exact, "a contiguous destination of just as many elements");
    let sparse = COMPRESS_SPARSE.get() as u32;
    let visit = |position: usize, from: *const u8, stride: isize, len: usize, taken: usize| {
        // SAFETY: the walk stays inside of `src` or of a copy of a part of it. `taken` plus the
        // popcount of the run is at most that of the mask, which is the size of `dst`. Each run has
        // its own range of `dst`.
        unsafe {
            let to = dst.origin().add(taken * size);
            let words = &bits.words;
            let job = Compression { words, position, len, to, from, stride, sparse };
            dispatch_width!(size, W => job.run::<W>(level))
        }
    };
    // If few elements are selected, only their cache lines are read.
    let many = bits.ones() > bits.len / (LINE / size);
    if many && is_strided(&src) {
        let visit = |run: Run<3>, copy: *const u8, taken: usize| {
            let from = copy.wrapping_offset(run.offsets[1]);
            visit(run.position, from, run.strides[1], run.len, taken);
        };
        return bits.in_boxes(None, src, 2, visit, || {});
    }
    let visit = |run: Run<1>, taken: usize| {
        let from = src.origin().wrapping_offset(run.offsets[0]);
        visit(run.position, from, run.strides[0], run.len, taken)
    };
    bits.parallel([src.layout()], size, 2, visit, || {});
}

/// A compression of one run of equally spaced elements.
pub(crate) struct Compression<'a> {
    /// The bitmap of the mask.
    pub(crate) words: &'a [u64],
    /// The position of the first element in the mask.
    pub(crate) position: usize,
    pub(crate) len: usize,
    /// The address to which the first selected element is written.
    pub(crate) to: *mut u8,
    pub(crate) from: *const u8,
    pub(crate) stride: isize,
    /// The most true elements among 64 that are moved one by one, see [`COMPRESS_SPARSE`].
    pub(crate) sparse: u32,
}

impl Compression<'_> {
    /// Does the compression, and returns the popcount of the run.
    ///
    /// # Safety
    /// All elements can be read at `from`, and as many can be written at `to` as the run has ones.
    /// The machine has the level.
    unsafe fn run<W: Word>(&self, level: Level) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            if self.stride == size_of::<W>() as isize
                && let Some(ones) = W::compress(self, level)
            {
                return ones;
            }
            self.each(|to: *mut W, from, bits, len| {
                if bits.count_ones() > self.sparse {
                    gather::<W>(to, from, self.stride, bits, len);
                } else {
                    pick::<W>(to, from, self.stride, bits);
                }
            })
        }
    }

    /// Copies the pieces that are all true and skips those that are all false. For each mixed
    /// piece, calls `mixed` with its destination, its source, its bits and its length. Returns the
    /// popcount of the run.
    ///
    /// # Safety
    /// As for [`Compression::run`].
    #[inline(always)]
    pub(crate) unsafe fn each<W: Copy>(
        &self,
        mut mixed: impl FnMut(*mut W, *const u8, u64, usize),
    ) -> usize {
        let mut to = self.to.cast::<W>();
        let mut ones = 0;
        pieces(self.words, self.position, self.len, |at, piece, len| {
            // SAFETY: the caller's promise; the piece lies inside of the run, and `to` advances by
            // one element for each set bit.
            unsafe {
                let from = self.from.offset(at as isize * self.stride);
                let count = match piece {
                    Piece::Mixed(bits) => {
                        mixed(to, from, bits, len);
                        bits.count_ones() as usize
                    }
                    Piece::True => {
                        let size = size_of::<W>() as isize;
                        move_run::<W>(to.cast(), size, from, self.stride, len);
                        len
                    }
                    Piece::False => 0,
                };
                to = to.add(count);
                ones += count;
            }
        });
        ones
    }
}

/// Copies the elements of a mixed piece. It stores every element at the next free position of a
/// buffer and advances that position by the bit, so there is no branch to mispredict.
///
/// # Safety
/// `len` elements, at most 64, can be read at `from`, and as many can be written at `to` as bits
/// are set.
unsafe fn gather<W: Word>(to: *mut W, from: *const u8, stride: isize, bits: u64, len: usize) {
    let mut buffer = [const { std::mem::MaybeUninit::<W>::uninit() }; super::WORD];
    let mut next = 0;
    for k in 0..len {
        // SAFETY: the caller's promise; `next` is at most `k`, which is less than 64.
        unsafe {
            let word = from.offset(k as isize * stride).cast::<W>().read_unaligned();
            buffer.get_unchecked_mut(next).write(word);
        }
        next += ((bits >> k) & 1) as usize;
    }
    // SAFETY: the first `next` elements of the buffer were written, and `to` has room for as many.
    unsafe {
        std::ptr::copy_nonoverlapping(
            buffer.as_ptr().cast::<u8>(),
            to.cast::<u8>(),
            next * size_of::<W>(),
        );
    }
}

/// Copies the elements of a mixed piece one by one.
///
/// # Safety
/// The elements whose bits are set can be read at `from`, and as many can be written at `to`.
unsafe fn pick<W: Copy>(to: *mut W, from: *const u8, stride: isize, bits: u64) {
    let mut rest = bits;
    for k in 0..bits.count_ones() as usize {
        // SAFETY: the caller's promise.
        unsafe {
            let place = from.offset(rest.trailing_zeros() as isize * stride);
            to.add(k).write_unaligned(place.cast::<W>().read_unaligned());
        }
        rest &= rest - 1;
    }
}
