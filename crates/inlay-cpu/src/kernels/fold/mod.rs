//! Folds (sum, mean, product, maximum, minimum) over axes, by a tree whose shape depends only on
//! the number of elements.
//!
//! Elements are folded in blocks with a fixed number of lanes, and the results of the blocks are
//! joined pairwise (see [`inlay_core::FOLD_BLOCK`]). The result is the same with any number of
//! threads, and more exact than that of a plain loop.

mod blocks;
mod lines;
mod packing;

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use half::{bf16, f16};
use inlay_core::{
    FOLD_BLOCK as BLOCK, FOLD_FEW_LANES as FEW_LANES, FOLD_LANES as LANES, Fold, Kind, Layout,
    Result, Shape, Strides,
};
use num_complex::{Complex32, Complex64};

use super::positions::Shared;
use crate::arch::LINE;
use crate::memory::{Plain, Scratch};
use crate::number::{Ordered, dispatch};
use crate::tuning::TILE;
use crate::view::Target;
use crate::walk::{Run, Walk};
use crate::{Bool8, Dst, Src, threads};
use blocks::{block_of, finish, space_of, strip_of};
use lines::{fold_block, fold_run};
use packing::{PACKED, Packing};

/// The fewest bytes of a row of a strip: results that are folded together because their elements are
/// adjacent in memory. Each has [`LANES`] accumulators, and those of a strip are in the second-level
/// cache. The longer the rows, the better the hardware prefetches them, so strips are only as short as
/// the threads need. (A loop of its own over axis 0 of 4000 x 4000 `f32` on one thread: 2.0 ms in strips
/// of 4000 results, 2.9 ms of 1024, 3.2 ms of 256; contiguous lines take 2.1 ms. Column by column, 4096 x
/// 4096 take 96 ms.)
const STRIP: usize = 512;

/// The bytes of a strip that are on the stack. A scratch buffer takes a tenth of the time of a tiny
/// fold.
const FEW: usize = 16 << 10;

/// A fold of numbers of one type: its accumulator, how numbers are joined, and how the result is
/// stored.
trait Folding {
    type Number: Copy;
    type Acc: Plain;
    type Stored;
    /// The neutral element: joining it changes nothing, not even the sign of a zero.
    const NOTHING: Self::Acc;
    /// The result for no numbers.
    const EMPTY: Self::Acc;
    fn lift(number: Self::Number) -> Self::Acc;
    fn join(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Returns the result of a fold of `count` numbers.
    fn store(acc: Self::Acc, count: usize) -> Self::Stored;
}

struct Sum<T>(PhantomData<T>);
struct Mean<T>(PhantomData<T>);
struct Prod<T>(PhantomData<T>);
struct Amax<T>(PhantomData<T>);
struct Amin<T>(PhantomData<T>);

macro_rules! folding {
    ($($fold:ident<$t:ty>, $acc:ty => $stored:ty, $nothing:expr, $empty:expr, $lift:expr, $join:expr, $store:expr);*
        $(;)?) => { $(
        impl Folding for $fold<$t> {
            type Number = $t;
            type Acc = $acc;
            type Stored = $stored;
            const NOTHING: $acc = $nothing;
            const EMPTY: $acc = $empty;
            #[inline(always)]
            fn lift(number: $t) -> $acc { ($lift)(number) }
            #[inline(always)]
            fn join(a: $acc, b: $acc) -> $acc { ($join)(a, b) }
            fn store(acc: $acc, count: usize) -> $stored { ($store)(acc, count) }
        }
    )* };
}
macro_rules! folding_integer {
    ($($t:ty),*) => { folding!($(
        // Sums and products wrap in 64 bits. A `u64` of sign-extended numbers has the same bits as
        // an `i64`.
        Sum<$t>, u64 => u64, 0, 0, |x| x as i64 as u64, u64::wrapping_add, |s, _| s;
        Mean<$t>, i128 => $t, 0, 0, |x| x as i128, |a, b| a + b, |s: i128, n| s.div_euclid(n as i128) as $t;
        Prod<$t>, u64 => u64, 1, 1, |x| x as i64 as u64, u64::wrapping_mul, |s, _| s;
        Amax<$t>, $t => $t, <$t>::MIN, 0, |x| x, Ord::max, |s, _| s;
        Amin<$t>, $t => $t, <$t>::MAX, 0, |x| x, Ord::min, |s, _| s;
    )*); };
}
macro_rules! folding_float {
    ($($t:ty, $acc:ty, $lift:expr, $store:expr);* $(;)?) => { folding!($(
        Mean<$t>, $acc => $t, -0.0, 0.0, $lift, |a, b| a + b, |s, n| ($store)(s / n as $acc, n);
        Sum<$t>, $acc => $t, -0.0, 0.0, $lift, |a, b| a + b, $store;
        Prod<$t>, $acc => $t, 1.0, 1.0, $lift, |a, b| a * b, $store;
        Amax<$t>, $acc => $t, <$acc>::NEG_INFINITY, 0.0, $lift, <$acc as Ordered>::acc_max, $store;
        Amin<$t>, $acc => $t, <$acc>::INFINITY, 0.0, $lift, <$acc as Ordered>::acc_min, $store;
    )*); };
}
folding_integer!(u8, i8, u16, i16, u32, i32, u64, i64);
folding_float!(
    f16, f32, f16::to_f32, |s, _| f16::from_f32(s);
    bf16, f32, bf16::to_f32, |s, _| bf16::from_f32(s);
    f32, f32, |x| x, |s, _| s;
    f64, f64, |x| x, |s, _| s;
);
folding!(
    Sum<Bool8>, u64 => u64, 0, 0, |x: Bool8| u64::from(x.get()), u64::wrapping_add, |s, _| s;
    Mean<Bool8>, u64 => u8, 0, 0, |x: Bool8| u64::from(x.get()), |a, b| a | b, |s, _| s as u8;
    Prod<Bool8>, u64 => u64, 1, 1, |x: Bool8| u64::from(x.get()), u64::wrapping_mul, |s, _| s;
    Amax<Bool8>, u8 => u8, 0, 0, |x: Bool8| u8::from(x.get()), |a, b| a | b, |s, _| s;
    Amin<Bool8>, u8 => u8, 1, 0, |x: Bool8| u8::from(x.get()), |a, b| a & b, |s, _| s;
    Sum<Complex32>, Complex32 => Complex32, Complex32::new(-0.0, -0.0), Complex32::new(0.0, 0.0), |x| x, |a, b| a + b, |s, _| s;
    Sum<Complex64>, Complex64 => Complex64, Complex64::new(-0.0, -0.0), Complex64::new(0.0, 0.0), |x| x, |a, b| a + b, |s, _| s;
    Mean<Complex32>, Complex32 => Complex32, Complex32::new(-0.0, -0.0), Complex32::new(0.0, 0.0), |x| x,
        |a, b| a + b, |s, n| s / n as f32;
    Mean<Complex64>, Complex64 => Complex64, Complex64::new(-0.0, -0.0), Complex64::new(0.0, 0.0), |x| x,
        |a, b| a + b, |s, n| s / n as f64;
    Prod<Complex32>, Complex32 => Complex32, Complex32::new(1.0, 0.0), Complex32::new(1.0, 0.0), |x| x, |a, b| a * b, |s, _| s;
    Prod<Complex64>, Complex64 => Complex64, Complex64::new(1.0, 0.0), Complex64::new(1.0, 0.0), |x| x, |a, b| a * b, |s, _| s;
);

/// Folds `src` over the axes for which `over` is true. `dst` has the remaining axes.
///
/// Sums and products of integers and bools wrap in 64 bits. 16-bit floats are folded in 32 bits and
/// rounded once. The caller must refuse a maximum, a minimum and an integer mean of no elements:
/// the first two would be 0, and the last one panics.
pub fn fold(how: Fold, dst: Dst<'_>, src: Src<'_>, over: &[bool]) -> Result<()> {
    let dst = dst.into_target();
    dst.expect_apart(&src);
    assert_eq!(over.len(), src.layout().rank(), "a choice for each axis");
    let dtype = src.dtype();
    let refused = || -> Functions { unreachable!("inference refuses an order of {dtype}") };
    let functions = match how {
        Fold::Sum => dispatch!(dtype, T => Functions::of::<Sum<T>>()),
        Fold::Mean => dispatch!(dtype, T => Functions::of::<Mean<T>>()),
        Fold::Prod => dispatch!(dtype, T => Functions::of::<Prod<T>>()),
        Fold::Amax => dispatch!(ordered dtype, T => Functions::of::<Amax<T>>(), else refused()),
        Fold::Amin => dispatch!(ordered dtype, T => Functions::of::<Amin<T>>(), else refused()),
    };
    fold_with(&functions, dst, src, over)
}

type FoldBlock = unsafe fn(*mut u8, &Walk<1>, *const u8, Range<usize>);
type FoldStrip = unsafe fn(Sums, &Walk<1>, (*const u8, isize), Range<usize>, *mut u8);

/// The sizes of the types of a fold, and the functions that are compiled for it. Pointers to
/// accumulators are aligned, and other pointers need not be.
struct Functions {
    number: usize,
    acc: usize,
    stored: usize,
    /// [`fold_run`].
    lines: unsafe fn(*mut u8, *const u8, &Run<2>, usize),
    /// [`fold_block`].
    line: unsafe fn(*mut u8, *const u8, usize),
    /// [`block_of`] with few or all lanes.
    block: [FoldBlock; 2],
    /// [`strip_of`] with few or all lanes.
    strip: [FoldStrip; 2],
    /// [`finish`].
    finish: unsafe fn((*mut u8, isize), Sums, usize),
}

impl Functions {
    fn of<F: Folding>() -> Self {
        Functions {
            number: size_of::<F::Number>(),
            acc: size_of::<F::Acc>(),
            stored: size_of::<F::Stored>(),
            lines: fold_run::<F>,
            line: fold_block::<F>,
            block: [block_of::<F, FEW_LANES>, block_of::<F, LANES>],
            strip: [strip_of::<F, FEW_LANES>, strip_of::<F, LANES>],
            finish: finish::<F>,
        }
    }
}

/// Returns how many of `results` that are adjacent in memory are folded together, if there are as many
/// items of work with all of them. The threads need two items each, to share them evenly.
fn columns_of(functions: &Functions, results: usize, items: usize) -> usize {
    let &Functions { number, acc, .. } = functions;
    let least = STRIP / number;
    let shares = (2 * threads::num_threads()).div_ceil(items.max(1));
    let share = if threads::num_threads() > 1 { results.div_ceil(shares) } else { results };
    let share = share.next_multiple_of((LINE / number).max(1));
    share.max(least).min(TILE.get() / space_of(acc, number)).clamp(1, results)
}

/// The accumulators of consecutive results. They are `blocks` accumulators apart.
#[derive(Clone, Copy)]
struct Sums {
    first: *mut u8,
    blocks: usize,
    /// The number of results.
    count: usize,
}

fn fold_with(functions: &Functions, dst: Target<'_>, src: Src<'_>, over: &[bool]) -> Result<()> {
    let &Functions { number, acc, stored, .. } = functions;
    assert_eq!(dst.dtype().size(), stored, "the result's dtype");
    let layout = src.layout();
    // Lines are padded with the neutral element. That would change a product of complex numbers
    // that are not finite.
    let real = src.dtype().kind() != Kind::Complex;
    if real
        && over.iter().all(|&folded| folded)
        && let Some(run) = Run::of_few([layout], [number])
        && run.len <= BLOCK
        && run.strides[0] == number as isize
    {
        // One line, without walks. (The sum of 8 x 8 `f32` takes 270 ns, and 400 ns with walks.)
        assert_eq!(dst.layout().numel(), 1, "one result");
        let one = Run { position: 0, offsets: [0; 2], strides: [0; 2], len: 1 };
        // SAFETY: the elements are contiguous, and there is one result. The functions are those of
        // the dtypes.
        unsafe { (functions.lines)(dst.origin(), src.origin(), &one, run.len) };
        return Ok(());
    }
    let part = |summed: bool| {
        let axes = (0..layout.rank()).filter(|&axis| over[axis] == summed);
        let dims = axes.map(|axis| (layout.shape()[axis], layout.strides()[axis]));
        let (shape, strides): (Shape, Strides) = dims.unzip();
        Layout::over(&shape, &strides, 0)
    };
    let (kept, summed) = (part(false), part(true));
    let outer = Walk::new([dst.layout(), &kept]);
    let inner = Walk::new([&summed]);
    if outer.len() == 0 {
        return Ok(());
    }
    let near = inner.len() == 1 || inner.run_strides()[0] == number as isize;
    let line = real && near && inner.len() > 0 && inner.run_len() == inner.len();
    if line && inner.len() <= BLOCK {
        // Lines are short, so the overhead per line matters. (4M `f32` in lines of 8 take 0.9 ms,
        // and 13 ms with a walk and a stored partial result per line. In lines of 64 they take 0.4
        // and 2.5 ms.)
        outer.parallel(inner.len() * number + stored, |run| {
            // SAFETY: the walk stays inside of both views, and the elements of a line inside of the
            // folded axes. The functions are those of the dtypes. No other thread has these
            // results.
            unsafe { (functions.lines)(dst.origin(), src.origin(), &run, inner.len()) };
        });
        return Ok(());
    }
    let blocks = inner.len().div_ceil(BLOCK).max(1);
    let bytes = outer.len().saturating_mul(blocks).saturating_mul(acc);
    let mut sums = Scratch::<u8>::new(bytes)?;
    let shared = Shared(sums.as_mut_ptr());
    // Accumulators are aligned, because a scratch buffer is, and their size is a multiple of their
    // alignment.
    let sums_of = |first: usize, block: usize, count: usize| Sums {
        first: shared.get().wrapping_add((first * blocks + block) * acc),
        blocks,
        count,
    };
    let cost = inner.len().min(BLOCK).saturating_mul(number);
    // If the elements of different results are closer in memory than those of one result, a strip
    // of results is folded together. (2048 rows, every other one of 4096 `f32`: 6
    // ms instead of 24.)
    let (across, along) = (outer.run_strides()[1], inner.run_strides()[0]);
    let nearer = along == 0 || across.unsigned_abs() < along.unsigned_abs();
    let lines = outer.len() / outer.run_len();
    let columns = match across != 0 && nearer {
        true => columns_of(functions, outer.run_len(), lines * blocks),
        false => 1,
    };
    let strips = outer.run_len().div_ceil(columns);
    let items = lines * strips * blocks;
    let gaps = real && columns == 1 && !line && along != number as isize;
    if gaps && inner.len() >= PACKED {
        let packing = Packing::new(&summed, &inner, number);
        packing.parallel(outer.len(), |at, elements, space| {
            let mut origin = src.origin();
            // SAFETY: the outer walk stays inside of the axes of `src` that are kept.
            outer.runs(at..at + 1, |run| origin = unsafe { origin.offset(run.offsets[1]) });
            // SAFETY: `origin` is the first element of a result, so all elements of the folded axes
            // are elements of `src`. No other part has these blocks, and their elements are copied
            // before they are folded. The functions are those of the dtypes.
            unsafe {
                let part = Src::new(origin, &summed, src.dtype(), src.span());
                let copy = packing.copy(part, elements.clone(), space);
                for first in elements.clone().step_by(BLOCK) {
                    let block = first..(first + BLOCK).min(inner.len());
                    let to = sums_of(at, first / BLOCK, 1).first;
                    match copy {
                        Some(copy) => {
                            let from = copy.add((first - elements.start) * number);
                            (functions.line)(to, from, block.len());
                        }
                        None => {
                            let lanes = usize::from(block.len() > FEW_LANES);
                            (functions.block[lanes])(to, &inner, origin, block);
                        }
                    }
                }
            }
        });
    } else {
        threads::split(items, cost.saturating_mul(columns), |range| {
            let room = if columns > 1 { columns * space_of(acc, number) } else { 0 };
            let mut few = MaybeUninit::<[u128; FEW / size_of::<u128>()]>::uninit();
            let mut many = if room > FEW { Scratch::<u8>::new(room).ok() } else { None };
            let space: Option<*mut u8> = match room {
                0 => None,
                1..=FEW => Some(few.as_mut_ptr().cast()),
                _ => many.as_mut().map(|many| many.as_mut_ptr()),
            };
            for item in range {
                let (first, block) = (item / blocks, item % blocks);
                let at = first / strips * outer.run_len() + first % strips * columns;
                let end = (at + columns).min((first / strips + 1) * outer.run_len());
                let elements = block * BLOCK..((block + 1) * BLOCK).min(inner.len());
                let mut origin = src.origin();
                // SAFETY: the outer walk stays inside of the axes of `src` that are kept.
                outer.runs(at..end, |run| origin = unsafe { origin.offset(run.offsets[1]) });
                let sums = sums_of(at, block, end - at);
                let lanes = usize::from(elements.len() > FEW_LANES);
                // SAFETY: `sums` has an element for each result and block, and no other item has these
                // results and this block. A line is contiguous, and the block lies inside of it. The
                // inner walk stays inside of the folded axes, and `origin` and the other results of the
                // strip are elements of the kept axes. The buffer has room for a strip, and belongs
                // to this thread. The functions are those of the dtypes.
                unsafe {
                    if line {
                        let from = origin.add(elements.start * number);
                        (functions.line)(sums.first, from, elements.len());
                    } else if let Some(space) = space {
                        (functions.strip[lanes])(sums, &inner, (origin, across), elements, space);
                    } else {
                        // There is one column, or no memory for a strip.
                        for column in 0..sums.count {
                            let from = origin.offset(column as isize * across);
                            let to = sums.first.add(column * blocks * acc);
                            (functions.block[lanes])(to, &inner, from, elements.clone());
                        }
                    }
                }
            }
        });
    }
    outer.runs(0..outer.len(), |run| {
        let sums = sums_of(run.position, 0, run.len);
        // SAFETY: the walk stays inside of `dst`, whose element size was checked above. All sums
        // were written.
        unsafe {
            let to = (dst.origin().offset(run.offsets[0]), run.strides[0]);
            (functions.finish)(to, sums, inner.len());
        }
    });
    Ok(())
}
