//! Compression: gathers the true elements of a mask, in order.

use super::{Bits, Piece, pieces};
use crate::arch::{self, Level, Word};
use crate::kernels::copy::move_run;
use crate::number::dispatch_width;
use crate::tuning::COMPRESS_SPARSE;
use crate::walk::Run;
use crate::{Dst, Src};

/// Writes the elements of `src` whose bits are true, in row-major order, to `dst`, which is
/// contiguous and has just as many.
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
    let visit = |run: Run<1>, taken: usize| {
        // SAFETY: the walk stays inside of `src`; `taken` and the run's bits count no more than all
        // ones, of which `dst` has place for; every place is this call's alone.
        unsafe {
            let job = Compression {
                words: &bits.words,
                position: run.position,
                len: run.len,
                to: dst.origin().add(taken * size),
                from: src.origin().offset(run.offsets[0]),
                stride: run.strides[0],
                sparse,
            };
            dispatch_width!(size, W => job.run::<W>(level))
        }
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
    /// Where the first true element goes.
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
    /// All elements can be read, as many written as are true; the machine has the level.
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

    /// Copies the pieces that are all true and skips those that are all false. For each mixed piece, calls
    /// `mixed` with its destination, its source, its bits and its length.
    ///
    /// # Safety
    /// As for `run`.
    #[inline(always)]
    pub(crate) unsafe fn each<W: Copy>(
        &self,
        mut mixed: impl FnMut(*mut W, *const u8, u64, usize),
    ) -> usize {
        let mut to = self.to.cast::<W>();
        let mut ones = 0;
        pieces(self.words, self.position, self.len, |at, piece, len| {
            // SAFETY: the piece lies inside of the run.
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

/// Stores every element at the next free place of a buffer and advances by its bit, so there is no branch
/// to mispredict.
unsafe fn gather<W: Word>(to: *mut W, from: *const u8, stride: isize, bits: u64, len: usize) {
    let mut buffer = [const { std::mem::MaybeUninit::<W>::uninit() }; super::WORD];
    let mut next = 0;
    for k in 0..len {
        // SAFETY: the caller's promise; `next` is at most `k`.
        unsafe {
            let word = from.offset(k as isize * stride).cast::<W>().read_unaligned();
            buffer.get_unchecked_mut(next).write(word);
        }
        next += ((bits >> k) & 1) as usize;
    }
    // SAFETY: the first `next` were written, and there is place for them.
    unsafe {
        std::ptr::copy_nonoverlapping(
            buffer.as_ptr().cast::<u8>(),
            to.cast::<u8>(),
            next * size_of::<W>(),
        );
    }
}

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
