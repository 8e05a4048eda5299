//! Expansion: writes consecutive elements to the true places of a mask.

use std::hint::select_unpredictable;

use super::{BLOCK, Bits, Piece, pieces};
use crate::arch::{self, Level, Word};
use crate::kernels::copy::{copy_to, move_run};
use crate::number::dispatch_width;
use crate::stream;
use crate::tuning::{EXPAND_SPARSE, STREAM};
use crate::walk::{Run, Walk};
use crate::{Dst, Src};

/// The k-th true place of `dst`, in row-major order, takes the k-th element of `source`, which is
/// contiguous and has at least as many. Where `base` is given, `dst` is fresh and takes its other
/// places from there.
pub fn expand(dst: Dst<'_>, base: Option<Src<'_>>, bits: &Bits, source: Src<'_>) {
    expand_with(arch::level(), STREAM.get(), dst, base, bits, source);
}

/// [`expand`] at `level`, with non-temporal stores for results of at least `stream` bytes.
pub(super) fn expand_with(
    level: Level,
    stream: usize,
    dst: Dst<'_>,
    base: Option<Src<'_>>,
    bits: &Bits,
    source: Src<'_>,
) {
    let dst = dst.into_target();
    dst.expect_apart(&source);
    let size = dst.same_size(&source);
    let enough = source.layout().is_contiguous(size) && source.layout().numel() >= bits.ones();
    assert!(enough, "a contiguous source of enough elements");
    if let Some(base) = &base {
        dst.expect_source(base);
    }
    // A strided base is copied first, in the order of its memory. (2048 x 2048 floats and a mask of the
    // same layout: transposed 4.2 ms instead of 27, every other column 4.7 instead of 8.)
    let base = base.filter(|base| {
        let gaps = bits.len > BLOCK && {
            let [to, from] = Walk::new([dst.layout(), base.layout()]).run_strides();
            to == size as isize && from != to
        };
        if gaps {
            copy_to(dst, *base);
        }
        !gaps
    });
    let old = base.unwrap_or(dst.as_src());
    // In place, ordinary stores are better: the lines were just read and are in the cache.
    let stream = base.is_some() && bits.len.saturating_mul(size) >= stream;
    let sparse = EXPAND_SPARSE.get() as u32;
    let visit = |run: Run<2>, taken: usize| {
        // SAFETY: the walk stays inside of `dst` and `old`; `taken` and the run's bits count no
        // more than all ones, of which the source has enough; every element is this call's alone.
        unsafe {
            let job = Expansion {
                words: &bits.words,
                position: run.position,
                len: run.len,
                to: dst.origin().offset(run.offsets[0]),
                to_stride: run.strides[0],
                old: old.origin().offset(run.offsets[1]),
                old_stride: run.strides[1],
                from: source.origin().add(taken * size),
                fresh: base.is_some(),
                stream,
                sparse,
            };
            dispatch_width!(size, W => job.run::<W>(level))
        }
    };
    let done = || {
        if stream {
            stream::fence();
        }
    };
    bits.parallel([dst.layout(), old.layout()], size, 3, visit, done);
}

/// An expansion of one run of equally spaced elements.
pub(crate) struct Expansion<'a> {
    /// The bitmap of the mask.
    pub(crate) words: &'a [u64],
    /// The position of the first element in the mask.
    pub(crate) position: usize,
    pub(crate) len: usize,
    pub(crate) to: *mut u8,
    pub(crate) to_stride: isize,
    pub(crate) old: *const u8,
    pub(crate) old_stride: isize,
    /// The element for the first true place.
    pub(crate) from: *const u8,
    /// Whether elements that are not replaced are copied from `old`. In place, `old` is `to`.
    pub(crate) fresh: bool,
    pub(crate) stream: bool,
    /// The most true elements among 64 that are written one by one, see [`EXPAND_SPARSE`].
    pub(crate) sparse: u32,
}

impl Expansion<'_> {
    /// Does the expansion, and returns the popcount of the run.
    ///
    /// # Safety
    /// All elements can be read and written; the machine has the level.
    pub(super) unsafe fn run<W: Word>(&self, level: Level) -> usize {
        let size = size_of::<W>() as isize;
        let contiguous = self.to_stride == size && self.old_stride == size;
        // SAFETY: the caller's promise.
        unsafe {
            if contiguous && let Some(ones) = W::expand(self, level) {
                return ones;
            }
            self.each(|to, old, from, bits, len| {
                if self.fresh && bits.count_ones() > self.sparse {
                    choose::<W>((to, self.to_stride), (old, self.old_stride), from, bits, len);
                } else {
                    if self.fresh {
                        move_run::<W>(to, self.to_stride, old, self.old_stride, len);
                    }
                    overwrite::<W>((to, self.to_stride), from, bits);
                }
            })
        }
    }

    /// Copies the pieces that are all true or all false. For each mixed piece, calls `mixed` with its
    /// destination, its old values, its new values, its bits and its length.
    ///
    /// # Safety
    /// As for `run`.
    #[inline(always)]
    pub(crate) unsafe fn each<W: Copy>(
        &self,
        mut mixed: impl FnMut(*mut u8, *const u8, *const W, u64, usize),
    ) -> usize {
        let mut from = self.from.cast::<W>();
        let mut ones = 0;
        pieces(self.words, self.position, self.len, |at, piece, len| {
            // SAFETY: the piece lies inside of the run.
            unsafe {
                let to = self.to.offset(at as isize * self.to_stride);
                let old = self.old.offset(at as isize * self.old_stride);
                let count = match piece {
                    Piece::Mixed(bits) => {
                        mixed(to, old, from, bits, len);
                        bits.count_ones() as usize
                    }
                    Piece::True => {
                        self.copy::<W>(to, from.cast(), size_of::<W>() as isize, len);
                        len
                    }
                    Piece::False => {
                        if self.fresh {
                            self.copy::<W>(to, old, self.old_stride, len);
                        }
                        0
                    }
                };
                from = from.add(count);
                ones += count;
            }
        });
        ones
    }

    unsafe fn copy<W: Copy>(&self, to: *mut u8, from: *const u8, stride: isize, len: usize) {
        let size = size_of::<W>();
        // SAFETY: the caller's promise.
        unsafe {
            if self.stream && self.to_stride == size as isize && stride == size as isize {
                stream::copy(to, from, len * size);
            } else {
                move_run::<W>(to, self.to_stride, from, stride, len);
            }
        }
    }
}

/// Chooses each element by a conditional move of the source pointer, so there is no branch to mispredict.
unsafe fn choose<W: Copy>(
    (to, to_stride): (*mut u8, isize),
    (old, old_stride): (*const u8, isize),
    mut from: *const W,
    bits: u64,
    len: usize,
) {
    for k in 0..len {
        let (by, bit) = (k as isize, (bits >> k) & 1);
        // SAFETY: the caller's promise; `from` is read only where a bit says that it is there.
        unsafe {
            let kept = old.offset(by * old_stride).cast::<W>();
            let word = select_unpredictable(bit == 1, from, kept).read_unaligned();
            to.offset(by * to_stride).cast::<W>().write_unaligned(word);
            from = from.add(bit as usize);
        }
    }
}

unsafe fn overwrite<W: Copy>((to, to_stride): (*mut u8, isize), from: *const W, bits: u64) {
    let mut rest = bits;
    for k in 0..bits.count_ones() as usize {
        // SAFETY: the caller's promise.
        unsafe {
            let place = to.offset(rest.trailing_zeros() as isize * to_stride);
            place.cast::<W>().write_unaligned(from.add(k).read_unaligned());
        }
        rest &= rest - 1;
    }
}
