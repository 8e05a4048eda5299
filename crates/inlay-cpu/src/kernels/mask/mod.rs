//! Mask kernels. Expansion and compression read a bitmap, into which the mask is packed once.
//! `blend` reads the mask itself.
//!
//! The bitmap is a private copy, so a kernel can't write more elements than were counted, even if
//! another thread changes the mask. The popcount before each block is stored, so blocks are
//! independent of each other.

mod blend;
mod comb;
mod compress;
mod expand;
mod pack;
#[cfg(test)]
mod tests;

use std::ops::Range;

use inlay_core::{DType, Layout, Result};

pub(crate) use blend::Filling;
pub use blend::blend;
#[cfg(test)]
pub(super) use comb::interleave_with;
pub use comb::{Comb, interleave};
pub(crate) use compress::Compression;
pub use compress::compress;
pub(crate) use expand::Expansion;
pub use expand::expand;

use super::boxes::{Boxes, has_gaps, is_repeated, is_transposed, over, packed};
use super::copy::copy_to;
use super::positions::Shared;
use crate::memory::{Scratch, Space};
use crate::once::settle;
use crate::view::Span;
use crate::walk::{Run, Walk};
use crate::{Dst, Src, threads};

/// The elements of a block: 64 words of the bitmap. A popcount is stored per block. It takes 8
/// bytes, and a block is enough work to be given to a thread.
const BLOCK: usize = 64 * WORD;
/// The bits of a word of the bitmap.
pub(crate) const WORD: usize = 64;

/// A mask as a bitmap, in row-major order.
pub struct Bits {
    words: Space<u64>,
    /// For each block, the popcount of all blocks before it.
    before: Space<usize>,
    len: usize,
    ones: usize,
}

impl Bits {
    /// Packs a view of bools into a bitmap.
    pub fn read(mask: Src<'_>) -> Result<Self> {
        assert_eq!(mask.dtype(), DType::Bool, "true or false");
        let len = mask.layout().numel();
        // The threshold of `of_few` may be more than a block. Here there must be at most one block,
        // because the popcount before it is set to 0.
        let few = Run::of_few([mask.layout()], [1]).filter(|_| len <= BLOCK);
        let walk = || Walk::new([mask.layout()]);
        if few.is_none() && len > BLOCK && !matches!(walk().run_strides()[0], 0 | 1) {
            return Bits::read_apart(mask);
        }
        let mut words = Space::<u64>::new(len.div_ceil(WORD))?;
        let mut before = Space::<usize>::new(len.div_ceil(BLOCK))?;
        if let Some(run) = few {
            words.fill(0);
            // SAFETY: `of_few` returns only elements of the mask.
            unsafe { pack::run(&mut words, 0, mask.origin(), run.strides[0], len) };
            before.fill(0);
            // Another thread may change the mask, so the private copy is counted.
            settle();
            let ones = words.iter().map(|word| word.count_ones() as usize).sum();
            return Ok(Bits { words, before, len, ones });
        }
        let walk = walk();
        let (to, counts) = (Shared(words.as_mut_ptr()), Shared(before.as_mut_ptr()));
        // An element takes as long as two bytes of a copy.
        threads::split(before.len(), 2 * BLOCK, |blocks| {
            for block in blocks {
                let range = block * BLOCK..((block + 1) * BLOCK).min(len);
                // SAFETY: each block has its own words and its own count, and one thread has the
                // block.
                let (packed, counted) = unsafe {
                    let to = to.get().add(range.start / WORD);
                    let words = std::slice::from_raw_parts_mut(to, range.len().div_ceil(WORD));
                    (words, &mut *counts.get().add(block))
                };
                packed.fill(0);
                walk.runs(range.clone(), |run| {
                    let bit = run.position - range.start;
                    // SAFETY: the walk stays inside of the mask, whose bounds were checked when the
                    // view was made.
                    unsafe {
                        let from = mask.origin().offset(run.offsets[0]);
                        pack::run(packed, bit, from, run.strides[0], run.len);
                    }
                });
                settle();
                *counted = packed.iter().map(|word| word.count_ones() as usize).sum();
            }
        });
        let mut ones = 0;
        for count in before.iter_mut() {
            ones += std::mem::replace(count, ones);
        }
        Ok(Bits { words, before, len, ones })
    }

    /// Copies a strided mask to contiguous memory and packs the copy. Without the copy, each bool
    /// of a transposed mask would be read from another cache line.
    fn read_apart(mask: Src<'_>) -> Result<Self> {
        let layout = Layout::contiguous("mask", mask.layout().shape(), 1)?;
        let mut bytes = Scratch::<u8>::new(layout.numel())?;
        let Range { start, end } = bytes.as_mut_ptr_range();
        let span = Span { low: start.addr(), high: end.addr() };
        // SAFETY: the scratch buffer has a byte for each element of the layout, and an element is
        // one byte, because `read` has checked the dtype. Only this function has the buffer.
        let near = unsafe { Dst::new(start, &layout, mask.dtype(), span) }.into_target();
        copy_to(near, mask);
        Bits::read(near.as_src())
    }

    /// Returns the popcount of the mask.
    pub fn ones(&self) -> usize {
        self.ones
    }

    /// Returns the popcount of all elements before `position`.
    fn ones_before(&self, position: usize) -> usize {
        let (block, word) = (position / BLOCK, position / WORD);
        let words = &self.words[block * (BLOCK / WORD)..word];
        let whole: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        let rest = self.words[word] & first(position % WORD);
        self.before[block] + whole + rest.count_ones() as usize
    }

    /// Copies a strided `src` to contiguous memory, box by box. Calls `visit` with the runs of each
    /// box, with the address of its copy, and with the popcount before the run. The offsets and
    /// strides of a run are those in `to`, in the copy, and in the mask. `cost` and `done` are as
    /// for [`Bits::parallel`].
    fn in_boxes(
        &self,
        to: Option<&Layout>,
        src: Src<'_>,
        cost: usize,
        visit: impl Fn(Run<3>, *const u8, usize) + Sync,
        done: impl Fn() + Sync,
    ) {
        let (shape, size) = (src.layout().shape(), src.dtype().size());
        assert_eq!(src.layout().numel(), self.len, "one bit an element");
        // In this layout, the offset of an element is its number in row-major order.
        let numbers = packed(shape, 1);
        let to = to.unwrap_or(&numbers);
        assert_eq!(to.shape(), shape, "layouts of one shape");
        let boxes = Boxes::new(shape, size, size, is_transposed(src.layout()));
        boxes.parallel(cost * size, |some| {
            // Without memory for a copy, the strided elements are used.
            let space = boxes.space(size);
            for number in some {
                let (to_first, to) = boxes.part(number, to);
                let (first, numbers) = boxes.part(number, &numbers);
                let (by, from) = boxes.part(number, src.layout());
                let packed = packed(numbers.shape(), size);
                // SAFETY: a box lies inside of the shape of `src`. The scratch buffer has room for
                // a box, only this thread uses it, and its elements are written before they are
                // read.
                let from = unsafe {
                    let src = src.part(by, &from);
                    match &space {
                        Some(space) => {
                            let copy = over(space, &packed, src.dtype());
                            copy_to(copy, src);
                            copy.as_src()
                        }
                        None => src,
                    }
                };
                let walk = Walk::new([&to, from.layout(), &numbers]);
                walk.runs(0..walk.len(), |mut run| {
                    run.offsets[0] += to_first;
                    // The elements of a box with one column don't follow each other in the mask.
                    let apart = run.strides[2] != 1;
                    let (count, len) = if apart { (run.len, 1) } else { (1, run.len) };
                    for _ in 0..count {
                        let position = (first + run.offsets[2]) as usize;
                        let part = Run { position, len, ..run };
                        visit(part, from.origin(), self.ones_before(position));
                        let next = run.offsets.iter_mut().zip(run.strides);
                        next.for_each(|(offset, stride)| *offset = offset.wrapping_add(stride));
                    }
                });
            }
            done();
        });
    }

    /// Calls `visit` with every run of `layouts`, in row-major order, and with the popcount before
    /// the run. `visit` returns the popcount of the run. Elements have `size` bytes. Uses several
    /// threads if there is enough work for them, at `cost * size` bytes per element. Each part of
    /// the work ends with a call of `done`.
    fn parallel<const N: usize>(
        &self,
        layouts: [&Layout; N],
        size: usize,
        cost: usize,
        visit: impl Fn(Run<N>, usize) -> usize + Sync,
        done: impl Fn() + Sync,
    ) {
        assert_eq!(layouts[0].numel(), self.len, "one bit an element");
        if let Some(run) = Run::of_few(layouts, [size; N]) {
            visit(run, 0);
            return done();
        }
        let (walk, cost) = (Walk::new(layouts), cost * size);
        threads::split(self.before.len(), BLOCK * cost, |blocks| {
            for block in blocks {
                let mut taken = self.before[block];
                walk.runs(block * BLOCK..((block + 1) * BLOCK).min(self.len), |run| {
                    taken += visit(run, taken);
                });
            }
            done();
        });
    }
}

/// Returns whether a source is copied in boxes: it has gaps, or repeats an element. Loops over
/// contiguous elements are vectorized. (Gradient of a `masked_select` of half of 1024 x 1024 `f32`, whose
/// base is one 0: 0.45 ms instead of 0.9.)
fn is_strided(src: &Src<'_>) -> bool {
    let repeats = || is_repeated(src.layout());
    src.layout().numel() > BLOCK && (has_gaps(src.layout(), src.dtype().size()) || repeats())
}

/// The bits of consecutive elements: all 1, all 0, or up to 64 mixed bits.
enum Piece {
    True,
    False,
    Mixed(u64),
}

/// Returns a word whose lowest `len` bits are set. `len` is at most 64.
#[inline]
pub(crate) fn first(len: usize) -> u64 {
    if len < WORD { (1 << len) - 1 } else { u64::MAX }
}

/// Returns the bits of the `len` elements that begin at `position`. `len` is at most 64.
#[inline]
fn get(words: &[u64], position: usize, len: usize) -> u64 {
    let (word, shift) = (position / WORD, position % WORD);
    let low = words[word] >> shift;
    let high = if shift + len > WORD { words[word + 1] << (WORD - shift) } else { 0 };
    (low | high) & first(len)
}

/// Splits the `len` elements that begin at `position` into pieces. A piece is all false, all true,
/// or mixed; a mixed piece has up to 64 elements. Calls `visit` with the start of each piece, its
/// kind and its length.
#[inline(always)]
fn pieces(words: &[u64], position: usize, len: usize, mut visit: impl FnMut(usize, Piece, usize)) {
    let mut at = 0;
    while at < len {
        let start = at;
        let mut size = WORD.min(len - at);
        let bits = get(words, position + at, size);
        at += size;
        if bits != 0 && bits != first(size) {
            visit(start, Piece::Mixed(bits), size);
            continue;
        }
        let all = bits != 0;
        if (position + at).is_multiple_of(WORD) {
            // Whole words need no shifts.
            let word = (position + at) / WORD;
            let whole = &words[word..word + (len - at) / WORD];
            let same = if all { u64::MAX } else { 0 };
            at += WORD * whole.iter().position(|&word| word != same).unwrap_or(whole.len());
        }
        while at < len {
            size = WORD.min(len - at);
            if get(words, position + at, size) != if all { first(size) } else { 0 } {
                break;
            }
            at += size;
        }
        visit(start, if all { Piece::True } else { Piece::False }, at - start);
    }
}
