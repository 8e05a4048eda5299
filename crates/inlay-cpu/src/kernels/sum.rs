//! Sums over axes, by a tree whose shape depends on the number of elements alone.
//!
//! Elements are summed in blocks, each in a fixed number of lanes, and the blocks' sums pairwise:
//! the same result with any number of threads, and closer to the exact one than a plain loop.

use half::{bf16, f16};
use inlay_core::{Layout, Result};
use num_complex::{Complex32, Complex64};

use super::positions::Shared;
use crate::memory::{Plain, Scratch};
use crate::number::dispatch;
use crate::walk::Walk;
use crate::{Bool8, Dst, Src, threads};

/// Elements that are summed without a tree.
const BLOCK: usize = 1024;
/// Partial sums kept side by side in a block, so that additions don't wait for each other.
const LANES: usize = 8;

/// A number that is summed: in which type, and how the sum is stored.
trait Summand: Copy {
    type Acc: Plain;
    type Stored;
    /// Adding it changes nothing, not even the sign of a zero.
    const NOTHING: Self::Acc;
    fn lift(self) -> Self::Acc;
    fn add(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn store(acc: Self::Acc) -> Self::Stored;
}

macro_rules! summand {
    ($($t:ty, $acc:ty, $stored:ty, $nothing:expr, $lift:expr, $add:expr, $store:expr);* $(;)?) => { $(
        impl Summand for $t {
            type Acc = $acc;
            type Stored = $stored;
            const NOTHING: $acc = $nothing;
            #[inline]
            fn lift(self) -> $acc { ($lift)(self) }
            #[inline]
            fn add(a: $acc, b: $acc) -> $acc { ($add)(a, b) }
            fn store(acc: $acc) -> $stored { ($store)(acc) }
        }
    )* };
}
macro_rules! summand_integer {
    ($($t:ty),*) => {
        // A sign-extended u64 that wraps holds the bits of a wrapping i64.
        summand!($($t, u64, u64, 0, |x| x as i64 as u64, u64::wrapping_add, |s| s);*);
    };
}
summand!(
    Bool8, u64, u64, 0, |x: Bool8| u64::from(x.get()), u64::wrapping_add, |s| s;
    f16, f32, f16, -0.0, f16::to_f32, |a, b| a + b, f16::from_f32;
    bf16, f32, bf16, -0.0, bf16::to_f32, |a, b| a + b, bf16::from_f32;
    f32, f32, f32, -0.0, |x| x, |a, b| a + b, |s| s;
    f64, f64, f64, -0.0, |x| x, |a, b| a + b, |s| s;
    Complex32, Complex32, Complex32, Complex32::new(-0.0, -0.0), |x| x, |a, b| a + b, |s| s;
    Complex64, Complex64, Complex64, Complex64::new(-0.0, -0.0), |x| x, |a, b| a + b, |s| s;
);
summand_integer!(u8, i8, u16, i16, u32, i32, u64, i64);

/// Sums `src` over the axes for which `over` is true into `dst`, which has the remaining ones.
/// Integers and bools wrap in 64 bits; 16-bit floats are summed in 32 and rounded once.
pub fn sum(dst: Dst<'_>, src: Src<'_>, over: &[bool]) -> Result<()> {
    dst.expect_apart(&src);
    dispatch!(src.dtype(), T => sum_of::<T>(dst, src, over))
}

fn sum_of<T: Summand>(dst: Dst<'_>, src: Src<'_>, over: &[bool]) -> Result<()> {
    assert_eq!(dst.dtype().size(), size_of::<T::Stored>(), "the sum's dtype");
    let layout = src.layout();
    let part = |summed: bool| {
        let axes = (0..layout.rank()).filter(|&axis| over[axis] == summed);
        let (shape, strides) = axes.map(|a| (layout.shape()[a], layout.strides()[a])).unzip();
        Layout::strided(shape, strides, 0)
    };
    let (kept, summed) = (part(false), part(true));
    let outer = Walk::new([dst.layout(), &kept]);
    let inner = Walk::new([&summed]);
    if outer.len() == 0 {
        return Ok(());
    }
    let blocks = inner.len().div_ceil(BLOCK).max(1);
    let mut sums = Scratch::<T::Acc>::new(outer.len().saturating_mul(blocks))?;
    let shared = Shared(sums.as_mut_ptr());
    let cost = inner.len().min(BLOCK).saturating_mul(size_of::<T>());
    threads::split(sums.len(), cost, |range| {
        for item in range {
            let (at, block) = (item / blocks, item % blocks);
            let elements = block * BLOCK..((block + 1) * BLOCK).min(inner.len());
            let mut origin = src.origin();
            // SAFETY: the outer walk stays inside of the kept axes.
            outer.runs(at..at + 1, |run| origin = unsafe { origin.offset(run.offsets[1]) });
            let total = block_sum::<T>(&inner, origin, elements);
            // SAFETY: each item has its own place.
            unsafe { shared.get().add(item).write(total) };
        }
    });
    outer.runs(0..outer.len(), |run| {
        for k in 0..run.len {
            let first = (run.position + k) * blocks;
            let total = tree::<T>(&mut sums[first..first + blocks]);
            // SAFETY: the walk stays inside of `dst`.
            unsafe {
                let to = dst.origin().offset(run.offsets[0] + k as isize * run.strides[0]);
                to.cast::<T::Stored>().write_unaligned(T::store(total));
            }
        }
    });
    Ok(())
}

fn block_sum<T: Summand>(
    inner: &Walk<1>,
    origin: *const u8,
    elements: std::ops::Range<usize>,
) -> T::Acc {
    if elements.is_empty() {
        return zero::<T>();
    }
    let mut lanes = [T::NOTHING; LANES];
    let first = elements.start;
    inner.runs(elements, |run| {
        for k in 0..run.len {
            let lane = (run.position - first + k) % LANES;
            // SAFETY: the walk stays inside of the summed axes.
            let value = unsafe {
                let at = run.offsets[0] + k as isize * run.strides[0];
                origin.offset(at).cast::<T>().read_unaligned()
            };
            lanes[lane] = T::add(lanes[lane], value.lift());
        }
    });
    tree::<T>(&mut lanes)
}

/// The sum of no numbers: 0 without a sign, whose bits are zeros in every dtype.
fn zero<T: Summand>() -> T::Acc {
    // SAFETY: any bits are a value of a plain type, zeros too.
    unsafe { std::mem::zeroed() }
}

/// Adds neighbours until one is left.
fn tree<T: Summand>(values: &mut [T::Acc]) -> T::Acc {
    let mut len = values.len();
    while len > 1 {
        for k in 0..len / 2 {
            values[k] = T::add(values[2 * k], values[2 * k + 1]);
        }
        if len % 2 == 1 {
            values[len / 2] = values[len - 1];
        }
        len = len.div_ceil(2);
    }
    values[0]
}
