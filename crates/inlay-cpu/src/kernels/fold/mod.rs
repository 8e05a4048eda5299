//! Folds (sum, mean, product, maximum, minimum) over axes, by a tree whose shape depends only on
//! the number of elements.
//!
//! Elements are folded in blocks with a fixed number of lanes, and the results of the blocks are
//! joined pairwise (see [`inlay_core::FOLD_BLOCK`]). The result is the same with any number of
//! threads, and more exact than that of a plain loop.

mod lines;

use std::marker::PhantomData;

use half::{bf16, f16};
use inlay_core::{
    FOLD_BLOCK as BLOCK, FOLD_FEW_LANES as FEW_LANES, FOLD_LANES as LANES, Fold, Kind, Layout,
    Result,
};
use num_complex::{Complex32, Complex64};

use super::positions::Shared;
use crate::memory::{Plain, Scratch};
use crate::number::{Ordered, dispatch};
use crate::view::Target;
use crate::walk::Walk;
use crate::{Bool8, Dst, Src, threads};

/// The number of results that are folded together if their elements are adjacent in memory. Their
/// lanes take 16 KiB for 32-bit sums. (Column by column, the sum of 4096 x 4096 `f32` over axis 0
/// takes 96 ms.)
const COLUMNS: usize = 128;

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
    let refused = || -> Result<()> { unreachable!("inference refuses an order of {dtype}") };
    match how {
        Fold::Sum => dispatch!(dtype, T => fold_of::<Sum<T>>(dst, src, over)),
        Fold::Mean => dispatch!(dtype, T => fold_of::<Mean<T>>(dst, src, over)),
        Fold::Prod => dispatch!(dtype, T => fold_of::<Prod<T>>(dst, src, over)),
        Fold::Amax => {
            dispatch!(ordered dtype, T => fold_of::<Amax<T>>(dst, src, over), else refused())
        }
        Fold::Amin => {
            dispatch!(ordered dtype, T => fold_of::<Amin<T>>(dst, src, over), else refused())
        }
    }
}

fn fold_of<F: Folding>(dst: Target<'_>, src: Src<'_>, over: &[bool]) -> Result<()> {
    assert_eq!(dst.dtype().size(), size_of::<F::Stored>(), "the result's dtype");
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
    let size = size_of::<F::Number>() as isize;
    // Lines are padded with the neutral element. That would change a product of complex numbers
    // that are not finite.
    let real = src.dtype().kind() != Kind::Complex;
    let near = inner.len() == 1 || inner.run_strides()[0] == size;
    let line = real && near && inner.len() > 0 && inner.run_len() == inner.len();
    if line && inner.len() <= BLOCK {
        lines::fold_lines::<F>(dst, src, &outer, inner.len());
        return Ok(());
    }
    let blocks = inner.len().div_ceil(BLOCK).max(1);
    let mut sums = Scratch::<F::Acc>::new(outer.len().saturating_mul(blocks))?;
    let shared = Shared(sums.as_mut_ptr());
    let cost = inner.len().min(BLOCK).saturating_mul(size_of::<F::Number>());
    // If the elements of different results are closer in memory than those of one result, a strip
    // of up to `COLUMNS` results is folded together. (2048 rows, every other one of 4096 `f32`: 6
    // ms instead of 24.)
    let (across, along) = (outer.run_strides()[1], inner.run_strides()[0]);
    let nearer = along == 0 || across.unsigned_abs() < along.unsigned_abs();
    let columns = if across != 0 && nearer { outer.run_len().min(COLUMNS) } else { 1 };
    let strips = outer.run_len().div_ceil(columns);
    let items = (outer.len() / outer.run_len()) * strips * blocks;
    threads::split(items, cost.saturating_mul(columns), |range| {
        for item in range {
            let (first, block) = (item / blocks, item % blocks);
            let at = first / strips * outer.run_len() + first % strips * columns;
            let end = (at + columns).min((first / strips + 1) * outer.run_len());
            let elements = block * BLOCK..((block + 1) * BLOCK).min(inner.len());
            let mut origin = src.origin();
            // SAFETY: the outer walk stays inside of the axes of `src` that are kept.
            outer.runs(at..end, |run| origin = unsafe { origin.offset(run.offsets[1]) });
            let put = |k: usize, total| {
                // SAFETY: `sums` has an element for each result and block, and no other item has
                // these results and this block.
                unsafe { shared.get().add((at + k) * blocks + block).write(total) };
            };
            let few = elements.len() <= FEW_LANES;
            if line {
                let by = elements.start * size_of::<F::Number>();
                // SAFETY: the folded axes are one contiguous line of `inner.len()` elements, and
                // the block lies inside of it.
                let mut lanes = unsafe { lines::lanes::<F>(origin.add(by), elements.len()) };
                put(0, tree::<F>(&mut lanes));
                continue;
            }
            let strip = (end - at, across);
            match (columns, few) {
                (1, true) => put(0, block_of::<F, FEW_LANES>(&inner, origin, elements)),
                (1, false) => put(0, block_of::<F, LANES>(&inner, origin, elements)),
                (_, true) => strip_of::<F, FEW_LANES>(&inner, origin, elements, strip, put),
                (_, false) => strip_of::<F, LANES>(&inner, origin, elements, strip, put),
            }
        }
    });
    outer.runs(0..outer.len(), |run| {
        for k in 0..run.len {
            let first = (run.position + k) * blocks;
            let total = tree::<F>(&mut sums[first..first + blocks]);
            // SAFETY: the walk stays inside of `dst`, whose element size was checked above.
            unsafe {
                let to = dst.origin().offset(run.offsets[0] + k as isize * run.strides[0]);
                to.cast::<F::Stored>().write_unaligned(F::store(total, inner.len()));
            }
        }
    });
    Ok(())
}

/// Folds the elements of a block into one accumulator.
fn block_of<F: Folding, const LANES: usize>(
    inner: &Walk<1>,
    origin: *const u8,
    elements: std::ops::Range<usize>,
) -> F::Acc {
    if elements.is_empty() {
        return F::EMPTY;
    }
    let mut lanes = [F::NOTHING; LANES];
    let first = elements.start;
    inner.runs(elements, |run| {
        // SAFETY: the walk stays inside of the folded axes, and `origin` is an element of the kept
        // axes.
        let at = |k: usize, stride: isize| unsafe {
            let at = run.offsets[0] + k as isize * stride;
            F::lift(origin.offset(at).cast::<F::Number>().read_unaligned())
        };
        let lane = |k: usize| (run.position - first + k) % LANES;
        let size = size_of::<F::Number>() as isize;
        let mut k = 0;
        if run.strides[0] == size {
            // Elements up to the next first lane are joined one by one. Then all lanes are joined
            // at once, which the compiler vectorizes.
            while k < run.len && lane(k) != 0 {
                lanes[lane(k)] = F::join(lanes[lane(k)], at(k, size));
                k += 1;
            }
            // A local copy, which the compiler can keep in registers.
            let mut own = lanes;
            while k + LANES <= run.len {
                for (lane, acc) in own.iter_mut().enumerate() {
                    *acc = F::join(*acc, at(k + lane, size));
                }
                k += LANES;
            }
            lanes = own;
        }
        for k in k..run.len {
            lanes[lane(k)] = F::join(lanes[lane(k)], at(k, run.strides[0]));
        }
    });
    tree::<F>(&mut lanes)
}

/// [`block_of`] for `count` results whose elements are `across` bytes apart. Each result uses the
/// same lanes and the same order as in `block_of`. Calls `put` with each result.
fn strip_of<F: Folding, const LANES: usize>(
    inner: &Walk<1>,
    origin: *const u8,
    elements: std::ops::Range<usize>,
    (count, across): (usize, isize),
    put: impl Fn(usize, F::Acc),
) {
    if elements.is_empty() {
        return (0..count).for_each(|k| put(k, F::EMPTY));
    }
    let size = size_of::<F::Number>() as isize;
    let mut lanes = [[F::NOTHING; COLUMNS]; LANES];
    let first = elements.start;
    inner.runs(elements, |run| {
        for k in 0..run.len {
            let row = &mut lanes[(run.position - first + k) % LANES][..count];
            // SAFETY: the walk stays inside of the folded axes, and the `count` elements inside of
            // the kept axes.
            unsafe {
                let from = origin.offset(run.offsets[0] + k as isize * run.strides[0]);
                // The compiler can vectorize only the loop with a constant stride.
                if across == size {
                    let from = from.cast::<F::Number>();
                    for (column, acc) in row.iter_mut().enumerate() {
                        *acc = F::join(*acc, F::lift(from.add(column).read_unaligned()));
                    }
                } else {
                    for (column, acc) in row.iter_mut().enumerate() {
                        let from = from.offset(column as isize * across).cast::<F::Number>();
                        *acc = F::join(*acc, F::lift(from.read_unaligned()));
                    }
                }
            }
        }
    });
    (0..count).for_each(|k| {
        put(k, tree::<F>(&mut std::array::from_fn::<F::Acc, LANES, _>(|lane| lanes[lane][k])));
    });
}

/// Joins neighbouring values pairwise until one is left.
fn tree<F: Folding>(values: &mut [F::Acc]) -> F::Acc {
    let mut len = values.len();
    while len > 1 {
        for k in 0..len / 2 {
            values[k] = F::join(values[2 * k], values[2 * k + 1]);
        }
        if len % 2 == 1 {
            values[len / 2] = values[len - 1];
        }
        len = len.div_ceil(2);
    }
    values[0]
}
