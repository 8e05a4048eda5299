//! Expansion: writes consecutive elements to the positions where a mask is true.

use std::hint::select_unpredictable;

use super::{Bits, Piece, is_strided, pieces};
use crate::arch::{self, Level, Word};
use crate::kernels::copy::move_run;
use crate::number::dispatch_width;
use crate::stream;
use crate::tuning::{EXPAND_SPARSE, STREAM};
use crate::walk::Run;
use crate::{Dst, Src};

/// Writes the k-th element of `source` to the k-th element of `dst`, in row-major order, whose bit
/// is set. `source` is contiguous and has at least as many elements as bits are set. If `base` is
/// given, `dst` is fresh, and its other elements are copied from `base`.
///
/// # Panics
/// When `source` is not contiguous or has too few elements, when `dst` has not one element for each
/// bit, when shapes or element sizes differ, or when `dst` overlaps a source.
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
    let old = base.unwrap_or(dst.as_src());
    // In place, ordinary stores are faster, because the lines were just read and are in the cache.
    let stream = base.is_some() && bits.len.saturating_mul(size) >= stream;
    let sparse = EXPAND_SPARSE.get() as u32;
    let visit = |position: usize, len: usize, to: Side<*mut u8>, old: Side<*const u8>, taken| {
        // SAFETY: the walk stays inside of `dst`, and of `old` or a copy of a part of it. `taken`
        // plus the popcount of the run is at most that of the mask, and the source has as many
        // elements, as was checked above. Threads have different runs.
        unsafe {
            let job = Expansion {
                words: &bits.words,
                position,
                len,
                to: to.0,
                to_stride: to.1,
                old: old.0,
                old_stride: old.1,
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
    let to = |by: isize| dst.origin().wrapping_offset(by);
    if let Some(base) = base
        && is_strided(&base)
    {
        let visit = |run: Run<3>, copy: *const u8, taken: usize| {
            let old = copy.wrapping_offset(run.offsets[1]);
            let (to, old) = ((to(run.offsets[0]), run.strides[0]), (old, run.strides[1]));
            visit(run.position, run.len, to, old, taken);
        };
        return bits.in_boxes(Some(dst.layout()), base, 3, visit, done);
    }
    let visit = |run: Run<2>, taken: usize| {
        let from = old.origin().wrapping_offset(run.offsets[1]);
        let (to, old) = ((to(run.offsets[0]), run.strides[0]), (from, run.strides[1]));
        visit(run.position, run.len, to, old, taken)
    };
    bits.parallel([dst.layout(), old.layout()], size, 3, visit, done);
}

/// The address of the first element of a run, and the distance in bytes to the next one.
type Side<P> = (P, isize);

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
    /// The address of the element for the first set bit.
    pub(crate) from: *const u8,
    /// Whether elements whose bits are 0 are copied from `old`. In place, `old` is `to`.
    pub(crate) fresh: bool,
    /// Whether contiguous pieces are written by non-temporal stores.
    pub(crate) stream: bool,
    /// The most true elements among 64 that are written one by one, see [`EXPAND_SPARSE`].
    pub(crate) sparse: u32,
}

impl Expansion<'_> {
    /// Does the expansion, and returns the popcount of the run.
    ///
    /// # Safety
    /// All elements can be written at `to` and read at `old`, and as many can be read at `from` as
    /// the run has ones. The machine has the level.
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

    /// Copies the pieces that are all true or all false. For each mixed piece, calls `mixed` with
    /// its destination, its old values, its new values, its bits and its length. Returns the
    /// popcount of the run.
    ///
    /// # Safety
    /// As for [`Expansion::run`].
    #[inline(always)]
    pub(crate) unsafe fn each<W: Copy>(
        &self,
        mut mixed: impl FnMut(*mut u8, *const u8, *const W, u64, usize),
    ) -> usize {
        let mut from = self.from.cast::<W>();
        let mut ones = 0;
        pieces(self.words, self.position, self.len, |at, piece, len| {
            // SAFETY: the caller's promise; the piece lies inside of the run, and `from` advances
            // by one element for each set bit.
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

    /// Copies a piece of `len` elements, by non-temporal stores if they are used and both sides are
    /// contiguous.
    ///
    /// # Safety
    /// As for [`move_run`].
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

/// Writes all elements of a mixed piece. It chooses the source of each by a conditional move of the
/// pointer, so there is no branch to mispredict.
///
/// # Safety
/// `len` elements can be written at `to` and read at `old`, and as many can be read at `from` as
/// bits are set.
unsafe fn choose<W: Copy>(
    (to, to_stride): (*mut u8, isize),
    (old, old_stride): (*const u8, isize),
    mut from: *const W,
    bits: u64,
    len: usize,
) {
    for k in 0..len {
        let (by, bit) = (k as isize, (bits >> k) & 1);
        // SAFETY: the caller's promise; `from` is read only if the bit is set.
        unsafe {
            let kept = old.offset(by * old_stride).cast::<W>();
            let word = select_unpredictable(bit == 1, from, kept).read_unaligned();
            to.offset(by * to_stride).cast::<W>().write_unaligned(word);
            from = from.add(bit as usize);
        }
    }
}

/// Writes the new elements of a mixed piece one by one.
///
/// # Safety
/// The elements whose bits are set can be written at `to`, and as many can be read at `from`.
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
