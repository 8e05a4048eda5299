//! Masks: counted once into bits, then expanded or compressed block by block.
//!
//! The bits are a private copy, so that a mask that another thread changes can't lead a kernel past
//! the counted elements; and blocks are independent once the ones before each are known.

use inlay_core::Result;

use super::copy::move_run;
use super::positions::Shared;
use crate::memory::Scratch;
use crate::number::dispatch_width;
use crate::walk::Walk;
use crate::{Bool8, Dst, Src, threads};

/// Elements that share one count. 4096 elements are 64 words of bits: the count costs 8 bytes a
/// block, and a block is enough work to be a thread's.
const BLOCK: usize = 64 * WORD;
const WORD: usize = 64;

/// A mask in row-major order.
pub struct Bits {
    words: Scratch<u64>,
    /// For each block, how many are true before it.
    before: Scratch<usize>,
    len: usize,
    ones: usize,
}

impl Bits {
    /// Reads a bool view.
    pub fn read(mask: Src<'_>) -> Result<Self> {
        let len = mask.layout().numel();
        let mut words = Scratch::<u64>::new(len.div_ceil(WORD))?;
        let mut before = Scratch::<usize>::new(len.div_ceil(BLOCK))?;
        let walk = Walk::new([mask.layout()]);
        let (to, counts) = (Shared(words.as_mut_ptr()), Shared(before.as_mut_ptr()));
        threads::split(before.len(), BLOCK, |blocks| {
            for block in blocks {
                let range = block * BLOCK..((block + 1) * BLOCK).min(len);
                let mut packed = [0u64; BLOCK / WORD];
                walk.runs(range.clone(), |run| {
                    // SAFETY: the walk stays inside of the mask.
                    let at = |k: usize| unsafe {
                        let by = run.offsets[0] + k as isize * run.strides[0];
                        mask.origin().offset(by).cast::<Bool8>().read().get()
                    };
                    for k in 0..run.len {
                        let bit = run.position - range.start + k;
                        packed[bit / WORD] |= u64::from(at(k)) << (bit % WORD);
                    }
                });
                let ones: usize = packed.iter().map(|word| word.count_ones() as usize).sum();
                let count = range.len().div_ceil(WORD);
                // SAFETY: each block has its own words and its own count.
                unsafe {
                    let to = to.get().add(range.start / WORD);
                    std::ptr::copy_nonoverlapping(packed.as_ptr(), to, count);
                    counts.get().add(block).write(ones);
                }
            }
        });
        let mut ones = 0;
        for count in before.iter_mut() {
            ones += std::mem::replace(count, ones);
        }
        Ok(Bits { words, before, len, ones })
    }

    /// How many are true.
    pub fn ones(&self) -> usize {
        self.ones
    }

    /// Up to 64 bits from `position` on, as many as its word still has, and how many those are.
    fn word(&self, position: usize) -> (u64, usize) {
        let shift = position % WORD;
        (self.words[position / WORD] >> shift, WORD - shift)
    }

    /// Calls `visit` with every run of `walk`, cut where words of bits end: the run's offsets, the
    /// bits of its elements, their number, and how many true ones came before it.
    fn parallel<const N: usize>(
        &self,
        walk: &Walk<N>,
        cost: usize,
        visit: impl Fn([isize; N], [isize; N], u64, usize, usize) + Sync,
    ) {
        assert_eq!(walk.len(), self.len, "one bit an element");
        threads::split(self.before.len(), BLOCK * cost, |blocks| {
            for block in blocks {
                let mut taken = self.before[block];
                walk.runs(block * BLOCK..((block + 1) * BLOCK).min(self.len), |run| {
                    let mut start = 0;
                    while start < run.len {
                        let (bits, left) = self.word(run.position + start);
                        let len = left.min(run.len - start);
                        let bits = if len < WORD { bits & ((1 << len) - 1) } else { bits };
                        let offsets = std::array::from_fn(|n| {
                            run.offsets[n] + start as isize * run.strides[n]
                        });
                        visit(offsets, run.strides, bits, len, taken);
                        taken += bits.count_ones() as usize;
                        start += len;
                    }
                });
            }
        });
    }
}

fn all_ones(bits: u64, len: usize) -> bool {
    bits.count_ones() as usize == len
}

/// The k-th true place of `dst`, in row-major order, takes the k-th element of `source`, which is
/// contiguous and has at least as many. Where `base` is given, `dst` is fresh and takes its other
/// places from there.
pub fn expand(dst: Dst<'_>, base: Option<Src<'_>>, bits: &Bits, source: Src<'_>) {
    dst.expect_apart(&source);
    let size = dst.same_size(&source);
    let enough = source.layout().is_contiguous(size) && source.layout().numel() >= bits.ones();
    assert!(enough, "a contiguous source of enough elements");
    let old = base.unwrap_or(dst.as_src());
    let walk = Walk::new([dst.layout(), old.layout()]);
    dispatch_width!(size, W => bits.parallel(&walk, 3 * size, |offsets, strides, bits, len, taken| {
        // SAFETY: the walk stays inside of `dst` and `old`; `taken` and the bits count no more than
        // all ones, of which the source has enough; every element is this call's alone.
        unsafe {
            let to = dst.origin().offset(offsets[0]);
            let from = source.origin().cast::<W>().add(taken);
            if all_ones(bits, len) {
                return move_run::<W>(to, strides[0], from.cast(), size as isize, len);
            }
            if base.is_some() {
                let kept = old.origin().offset(offsets[1]);
                move_run::<W>(to, strides[0], kept, strides[1], len);
            }
            let mut rest = bits;
            for k in 0..bits.count_ones() as usize {
                let place = to.offset(rest.trailing_zeros() as isize * strides[0]);
                place.cast::<W>().write_unaligned(from.add(k).read_unaligned());
                rest &= rest - 1;
            }
        }
    }));
}

/// Writes the elements of `src` whose bits are true, in row-major order, to `dst`, which is
/// contiguous and has just as many.
pub fn compress(dst: Dst<'_>, src: Src<'_>, bits: &Bits) {
    dst.expect_apart(&src);
    let size = dst.same_size(&src);
    let exact = dst.layout().is_contiguous(size) && dst.layout().numel() == bits.ones();
    assert!(exact, "a contiguous destination of just as many elements");
    let walk = Walk::new([src.layout()]);
    dispatch_width!(size, W => bits.parallel(&walk, 2 * size, |offsets, strides, bits, len, taken| {
        // SAFETY: as in `expand`.
        unsafe {
            let to = dst.origin().cast::<W>().add(taken);
            let from = src.origin().offset(offsets[0]);
            if all_ones(bits, len) {
                return move_run::<W>(to.cast(), size as isize, from, strides[0], len);
            }
            let mut rest = bits;
            for k in 0..bits.count_ones() as usize {
                let place = from.offset(rest.trailing_zeros() as isize * strides[0]);
                to.add(k).write_unaligned(place.cast::<W>().read_unaligned());
                rest &= rest - 1;
            }
        }
    }));
}
