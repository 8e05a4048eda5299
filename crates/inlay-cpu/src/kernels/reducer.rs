//! The five reductions as types, so that a generic loop is compiled for each of them.

use std::marker::PhantomData;
use std::mem::{MaybeUninit, transmute_copy};

use inlay_core::{DType, Reduce};

use super::groups::Members;
use crate::arch::{self, Loop, Simd, hidden_word};
pub(super) use crate::arch::{prefetch_first as prefetch, prefetch_second as prefetch_far};
use crate::memory::Plain;
use crate::number::{Number, Ordered, unsigned};

/// A reduction of numbers of type `T`. Each number is widened to the accumulator type, the
/// accumulators are joined, and the last one is finished: narrowed to a `T`.
pub(super) trait Reducer<T: Copy> {
    type Acc: Plain;
    /// Whether a `T` can store a partial result without loss. Then the destination serves as the
    /// accumulator.
    const IN_PLACE: bool;
    /// Whether [`Reducer::finish`] needs the number of values that were joined.
    const COUNTS: bool = false;
    /// Whether partial results of consecutive values can be merged, in order, with the bits of the
    /// loop over all values: [`Reducer::merge`] is associative. Only if it is `IN_PLACE`.
    const EXACT: bool = false;
    fn widen(value: T) -> Self::Acc;
    fn join(acc: Self::Acc, value: Self::Acc) -> Self::Acc;
    fn finish(acc: Self::Acc, count: usize) -> T;
    /// [`Reducer::widen`] of an array, in a loop that is compiled for one instruction set level.
    fn widen_many<S: Simd, const N: usize>(simd: S, values: [T; N]) -> [Self::Acc; N];
    /// [`Reducer::widen`] for each element of a slice. Both slices have the same length.
    fn widen_slice(values: &[T], to: &mut [Self::Acc]);
    /// [`Reducer::finish`] for each element of a slice. Both slices have the same length. The
    /// contents of `acc` are unspecified afterwards.
    fn finish_slice(acc: &mut [Self::Acc], count: usize, to: &mut [T]);

    /// Joins a value to a partial result that is stored as a `T`. Only for reductions that are
    /// `IN_PLACE`. A mean is finished with a count of 1, which leaves it a sum.
    #[inline(always)]
    fn merge(so_far: T, value: T) -> T {
        Self::finish(Self::join(Self::widen(so_far), Self::widen(value)), 1)
    }

    /// Returns the partial result of a single value. It is the value itself, but in the form that
    /// [`Reducer::merge`] returns: a bool is 0 or 1, and a NaN of 16 bits is quiet.
    #[inline(always)]
    fn alone(value: T) -> T {
        Self::finish(Self::widen(value), 1)
    }
}

/// Returns a value joined with the old one, or alone if the old one does not take part. It has no branch,
/// because a branch would often be predicted wrong. (Sums of 10M values into 1M by a uniform index, without
/// the old values: 20 ms instead of 28.)
#[inline(always)]
pub(super) fn merge_or_alone<T: Copy, R: Reducer<T>>(takes_part: bool, so_far: T, value: T) -> T {
    let mask = hidden_word(u64::from(takes_part).wrapping_neg());
    blend(mask, R::merge(so_far, value), R::alone(value))
}

/// Returns the first value if all bits of `mask` are set, and the second one if none is. x86 has no
/// conditional moves of floats, so that the compiler would make a branch of a choice.
#[inline(always)]
pub(super) fn blend<T: Copy>(mask: u64, first: T, second: T) -> T {
    macro_rules! bits {
        ($U:ty) => {{
            let mask = mask as i64 as $U;
            // SAFETY: a `T` has as many bytes as this integer, and gets the bits of a `T`.
            unsafe {
                let [first, second] = [first, second].map(|it| transmute_copy::<T, $U>(&it));
                transmute_copy(&(first & mask | second & !mask))
            }
        }};
    }
    match size_of::<T>() {
        1 => bits!(u8),
        2 => bits!(u16),
        4 => bits!(u32),
        8 => bits!(u64),
        16 => bits!(u128),
        _ => {
            if mask == 0 {
                second
            } else {
                first
            }
        }
    }
}

pub(super) struct Sum;
pub(super) struct Mul;
pub(super) struct Mean;
pub(super) struct Amax;
pub(super) struct Amin;

/// Implements the reductions whose result is the narrowed accumulator: all but the mean.
macro_rules! reducer {
    ($($name:ident of $bound:ident, $join:ident, $in_place:expr, $exact:expr $(, $merge:ident)?;)*) => { $(
        impl<T: $bound> Reducer<T> for $name {
            type Acc = T::Acc;
            const IN_PLACE: bool = $in_place;
            const EXACT: bool = $exact;
            fn widen(value: T) -> T::Acc { value.widen() }
            fn join(acc: T::Acc, value: T::Acc) -> T::Acc { T::$join(acc, value) }
            fn finish(acc: T::Acc, _count: usize) -> T { T::narrow(acc) }
            fn widen_slice(values: &[T], to: &mut [T::Acc]) { T::widen_slice(values, to) }
            #[inline(always)]
            fn widen_many<S: Simd, const N: usize>(simd: S, values: [T; N]) -> [T::Acc; N] {
                T::widen_many(simd, values)
            }
            fn finish_slice(acc: &mut [T::Acc], _count: usize, to: &mut [T]) {
                T::narrow_slice(acc, to);
            }
            $(
                #[inline(always)]
                fn merge(so_far: T, value: T) -> T { T::$merge(so_far, value) }
                // The merge of a value with itself is the value.
                #[inline(always)]
                fn alone(value: T) -> T { T::$merge(value, value) }
            )?
        }
    )* };
}
// A maximum or minimum is one of the numbers, so a number can always store a partial result. It is the
// last NaN, or else the first of the largest or smallest numbers, so it is exact. Integers wrap, so
// their sums and products are exact, too, as `or` and `and` are. Those of floats are rounded.
reducer!(
    Sum of Number, acc_add, T::ACC_IS_SELF, T::ACC_IS_SELF && !T::DTYPE.is_differentiable();
    Mul of Number, acc_mul, T::ACC_IS_SELF, T::ACC_IS_SELF && !T::DTYPE.is_differentiable();
    Amax of Ordered, acc_max, true, true, merge_max;
    Amin of Ordered, acc_min, true, true, merge_min;
);

impl<T: Number> Reducer<T> for Mean {
    type Acc = T::MeanAcc;
    // The sum of integers for a mean needs a wider type than the integers themselves.
    const IN_PLACE: bool = T::ACC_IS_SELF && T::DTYPE.is_differentiable();
    const COUNTS: bool = true;
    fn widen(value: T) -> T::MeanAcc {
        value.mean_widen()
    }
    fn join(acc: T::MeanAcc, value: T::MeanAcc) -> T::MeanAcc {
        T::mean_add(acc, value)
    }
    fn finish(acc: T::MeanAcc, count: usize) -> T {
        T::mean_of(acc, count)
    }
    #[inline(always)]
    fn widen_many<S: Simd, const N: usize>(simd: S, values: [T; N]) -> [T::MeanAcc; N] {
        T::mean_widen_many(simd, values)
    }
    fn widen_slice(values: &[T], to: &mut [T::MeanAcc]) {
        T::mean_widen_slice(values, to);
    }
    fn finish_slice(acc: &mut [T::MeanAcc], count: usize, to: &mut [T]) {
        T::mean_of_slice(acc, count, to);
    }
}

/// Returns a reduction and a dtype that give the same bits, but stand for several. Only these are
/// compiled. Panics if the reduction is not defined for the dtype.
pub(super) fn common(reduce: Reduce, dtype: DType) -> (Reduce, DType) {
    assert!(reduce.is_defined_for(dtype), "inference refuses {reduce} of {dtype}");
    match (reduce, dtype) {
        // The sum of bools is `or`, and the product is `and`.
        (Reduce::Amax, DType::Bool) => (Reduce::Sum, DType::Bool),
        (Reduce::Amin, DType::Bool) => (Reduce::Mul, DType::Bool),
        (Reduce::Sum | Reduce::Mul, dtype) => (reduce, unsigned(dtype)),
        other => other,
    }
}

/// Runs `$body` with `$T` as the type of `$dtype` and `$R` as the type of `$reduce`, or with those
/// of their [`common`] form. Panics if the reduction is not defined for the dtype.
macro_rules! dispatch_reduce {
    ($reduce:expr, $dtype:expr, ($T:ident, $R:ident) => $body:expr) => {{
        use inlay_core::Reduce;
        use $crate::kernels::reducer::{Amax, Amin, Mean, Mul, Sum, common};
        use $crate::number::dispatch;
        let (reduce, dtype) = common($reduce, $dtype);
        match reduce {
            Reduce::Sum => dispatch!(wrapping dtype, $T => { type $R = Sum; $body }),
            Reduce::Mul => dispatch!(wrapping dtype, $T => { type $R = Mul; $body }),
            Reduce::Mean => dispatch!(number dtype, $T => { type $R = Mean; $body }, else unreachable!("{dtype} has no mean")),
            Reduce::Amax => dispatch!(real dtype, $T => { type $R = Amax; $body }, else unreachable!("{dtype} has no order")),
            Reduce::Amin => dispatch!(real dtype, $T => { type $R = Amin; $body }, else unreachable!("{dtype} has no order")),
        }
    }};
}
pub(super) use dispatch_reduce;

/// Returns [`Reducer::IN_PLACE`] of a reduction.
pub(super) fn is_in_place(reduce: Reduce, dtype: DType) -> bool {
    dispatch_reduce!(reduce, dtype, (T, R) => <R as Reducer<T>>::IN_PLACE)
}

/// Returns [`Reducer::EXACT`] of a reduction.
pub(super) fn is_exact(reduce: Reduce, dtype: DType) -> bool {
    dispatch_reduce!(reduce, dtype, (T, R) => <R as Reducer<T>>::EXACT)
}

/// The rows that [`reduce_run`] reads. Rows are equally spaced, and so are the elements of a row.
/// Distances are in bytes.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) origin: *const u8,
    /// The distance from one row to the next.
    pub(super) row_stride: isize,
    /// The distance from one element of a row to the next.
    pub(super) stride: isize,
}

/// The number of elements of a row that are reduced at a time. It is a multiple of the vector
/// length, and the accumulators fit into the first-level cache.
const LANES: usize = 64;

/// Rows are prefetched this many bytes before they are used. The hardware prefetcher can't predict
/// rows that are named by an index. They are prefetched into the second-level cache, because the
/// first-level cache allows fewer outstanding misses. (1M rows of 256 bytes on two threads: 13.5 ms
/// at 3 KiB, 11.8 ms at 4 KiB, 10.9 ms at 6 KiB, 11 ms at 12 KiB; 20 ms with prefetches into the
/// first-level cache, 21 ms without any.)
const AHEAD: usize = 6 << 10;

/// Returns how many rows ahead a row of `bytes` is prefetched.
pub(super) fn rows_ahead(bytes: usize) -> usize {
    (AHEAD / bytes.max(1)).clamp(1, 64)
}

/// The type of [`reduce_run`].
pub(super) type ReduceRun =
    unsafe fn((*mut u8, isize), Option<(*const u8, isize)>, Rows, Members<'_>, usize);

/// Reduces the rows that `members` lists, in that order, element by element, and writes the result
/// to `to`. If `own` is given, its elements are reduced first. Pointers come with the distance from
/// one element to the next.
///
/// # Safety
/// `len` elements can be written at `to`, and read at `own`, if it is given, and in each row of
/// `rows` that `members` lists. `to` overlaps none of these, except that `own` may be `to` itself.
/// `members` is not empty, or `own` is given.
pub(super) unsafe fn reduce_run<T: Copy, R: Reducer<T>>(
    to: (*mut u8, isize),
    own: Option<(*const u8, isize)>,
    rows: Rows,
    members: Members<'_>,
    len: usize,
) {
    let work = RunReduction::<T, R> { to, own, rows, members, len, types: PhantomData };
    // SAFETY: the caller's promise.
    unsafe { arch::dispatch(work) }
}

/// [`reduce_run`] as a loop that is compiled per level. (Rows of 64 `f32`: AVX2 takes 0.85 of the
/// time of SSE2.)
struct RunReduction<'a, T, R> {
    to: (*mut u8, isize),
    own: Option<(*const u8, isize)>,
    rows: Rows,
    members: Members<'a>,
    len: usize,
    types: PhantomData<(T, R)>,
}

impl<T: Copy, R: Reducer<T>> Loop for RunReduction<'_, T, R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self, _simd: S) {
        let RunReduction { to, own, rows, members, len, .. } = self;
        // SAFETY: the caller's promise.
        unsafe { reduce_run_plain::<T, R>(to, own, rows, members, len) }
    }
}

/// [`reduce_run`] without dispatch.
///
/// # Safety
/// As for [`reduce_run`].
#[inline(always)]
unsafe fn reduce_run_plain<T: Copy, R: Reducer<T>>(
    (to, to_stride): (*mut u8, isize),
    own: Option<(*const u8, isize)>,
    rows: Rows,
    members: Members<'_>,
    len: usize,
) {
    let mut start = 0;
    while start < len {
        let n = (len - start).min(LANES);
        // SAFETY: the caller's promise.
        unsafe {
            let to = (to.offset(start as isize * to_stride), to_stride);
            let own = own.map(|(own, stride)| (own.offset(start as isize * stride), stride));
            let rows = Rows { origin: rows.at(0, start).0, ..rows };
            reduce_lanes::<T, R>(to, own, rows, members, n);
        }
        start += n;
    }
}

/// [`reduce_run`] for up to [`LANES`] elements.
///
/// # Safety
/// As for [`reduce_run`].
#[inline(always)]
unsafe fn reduce_lanes<T: Copy, R: Reducer<T>>(
    to: (*mut u8, isize),
    own: Option<(*const u8, isize)>,
    rows: Rows,
    members: Members<'_>,
    n: usize,
) {
    let count = members.len() + usize::from(own.is_some());
    let bytes = n * size_of::<T>();
    let near = rows.stride == size_of::<T>() as isize;
    let ahead = if near { rows_ahead(bytes) } else { 0 };
    let mut acc = Accumulators::<T, R>::new();
    // SAFETY: the caller's promise; `set` writes the first `n` accumulators before `join` and
    // `finish` read them.
    unsafe {
        let first = usize::from(own.is_none());
        acc.set(own.unwrap_or_else(|| rows.at(members.get(0), 0)), n);
        for k in first..members.len() {
            if ahead > 0 {
                prefetch_far(rows.at(members.ahead(k + ahead), 0).0, bytes);
            }
            acc.join(rows.at(members.get(k), 0), n);
        }
        acc.finish(to, n, count);
    }
}

/// The accumulators of up to [`LANES`] elements, and buffers for conversions of slices.
struct Accumulators<T: Copy, R: Reducer<T>> {
    acc: [MaybeUninit<R::Acc>; LANES],
    wide: [MaybeUninit<R::Acc>; LANES],
    values: [MaybeUninit<T>; LANES],
}

impl<T: Copy, R: Reducer<T>> Accumulators<T, R> {
    /// Whether accumulators differ in size from the numbers. Then slices are converted, which is
    /// faster than one number at a time.
    const CONVERTS: bool = size_of::<R::Acc>() != size_of::<T>();

    fn new() -> Self {
        Accumulators {
            acc: [MaybeUninit::uninit(); LANES],
            wide: [MaybeUninit::uninit(); LANES],
            values: [MaybeUninit::uninit(); LANES],
        }
    }

    /// Sets the first `n` accumulators to the `n` values at `from`.
    ///
    /// # Safety
    /// All of the values can be read.
    #[inline(always)]
    unsafe fn set(&mut self, from: (*const u8, isize), n: usize) {
        // SAFETY: the caller's promise.
        unsafe { each::<T>(n, from, |k, value| _ = self.acc[k].write(R::widen(value))) };
    }

    /// Joins the `n` values at `from` to the first `n` accumulators.
    ///
    /// # Safety
    /// All of the values can be read, and [`Accumulators::set`] has set the `n` accumulators.
    #[inline(always)]
    unsafe fn join(&mut self, (from, stride): (*const u8, isize), n: usize) {
        // SAFETY: the caller's promise; the first `n` elements of `values` and `wide` are written
        // before they are read.
        unsafe {
            if !Self::CONVERTS || stride != size_of::<T>() as isize {
                each::<T>(n, (from, stride), |k, value| {
                    let acc = self.acc[k].assume_init();
                    self.acc[k].write(R::join(acc, R::widen(value)));
                });
                return;
            }
            // A slice must be aligned, and a row need not be. So the row is copied first.
            std::ptr::copy_nonoverlapping(
                from,
                self.values.as_mut_ptr().cast(),
                n * size_of::<T>(),
            );
            let values = std::slice::from_raw_parts(self.values.as_ptr().cast::<T>(), n);
            let wide = std::slice::from_raw_parts_mut(self.wide.as_mut_ptr().cast::<R::Acc>(), n);
            R::widen_slice(values, wide);
            for (acc, &wide) in self.acc[..n].iter_mut().zip(&*wide) {
                acc.write(R::join(acc.assume_init(), wide));
            }
        }
    }

    /// Writes the results of the first `n` accumulators, of `count` values each, to `to`.
    ///
    /// # Safety
    /// All of the elements can be written, and [`Accumulators::set`] has set the `n` accumulators.
    #[inline(always)]
    unsafe fn finish(&mut self, (to, stride): (*mut u8, isize), n: usize, count: usize) {
        // SAFETY: the caller's promise; the first `n` elements of `values` are set to 0 before they
        // are borrowed as a slice.
        unsafe {
            let acc = std::slice::from_raw_parts_mut(self.acc.as_mut_ptr().cast::<R::Acc>(), n);
            if !Self::CONVERTS {
                for (k, &acc) in acc.iter().enumerate() {
                    let to = to.offset(k as isize * stride).cast::<T>();
                    to.write_unaligned(R::finish(acc, count));
                }
                return;
            }
            std::ptr::write_bytes(self.values.as_mut_ptr(), 0, n);
            let values = std::slice::from_raw_parts_mut(self.values.as_mut_ptr().cast::<T>(), n);
            R::finish_slice(acc, count, values);
            for (k, &value) in values.iter().enumerate() {
                to.offset(k as isize * stride).cast::<T>().write_unaligned(value);
            }
        }
    }
}

impl Rows {
    /// Returns the address of an element of a row, and the distance to the next element.
    ///
    /// # Safety
    /// The row and the element lie inside of the memory that these rows describe.
    unsafe fn at(&self, row: usize, element: usize) -> (*const u8, isize) {
        let by = row as isize * self.row_stride + element as isize * self.stride;
        // SAFETY: the caller's promise.
        (unsafe { self.origin.offset(by) }, self.stride)
    }
}

/// Calls `visit` with each of `n` equally spaced values. Contiguous values have a separate loop,
/// which the compiler can vectorize.
///
/// # Safety
/// All of the values can be read.
#[inline(always)]
pub(super) unsafe fn each<T: Copy>(
    n: usize,
    (from, stride): (*const u8, isize),
    mut visit: impl FnMut(usize, T),
) {
    // SAFETY: the caller's promise.
    unsafe {
        if stride == size_of::<T>() as isize {
            for k in 0..n {
                visit(k, from.cast::<T>().add(k).read_unaligned());
            }
        } else {
            for k in 0..n {
                visit(k, from.offset(k as isize * stride).cast::<T>().read_unaligned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::Bool8;

    /// Compares merges of three numbers in both orders, bit by bit, and merges of a value with those
    /// of its partial result.
    fn check<T: Copy, R: Reducer<T>, const N: usize>(numbers: &[[u8; N]]) {
        assert!(R::EXACT && size_of::<T>() == N);
        // SAFETY: both types have the same size, and any bytes are a number.
        let number = |bytes: &[u8; N]| unsafe { std::mem::transmute_copy::<[u8; N], T>(bytes) };
        // SAFETY: as above.
        let bytes = |number: T| unsafe { std::mem::transmute_copy::<T, [u8; N]>(&number) };
        let merge = |a: &[u8; N], b: &[u8; N]| bytes(R::merge(number(a), number(b)));
        for a in numbers {
            for b in numbers {
                let alone = |value: &[u8; N]| bytes(R::alone(number(value)));
                assert_eq!(merge(a, &alone(b)), merge(a, b), "{a:?} {b:?}");
                assert_eq!(alone(&merge(a, b)), merge(a, b), "{a:?} {b:?}");
                for c in numbers {
                    assert_eq!(merge(&merge(a, b), c), merge(a, &merge(b, c)), "{a:?} {b:?} {c:?}");
                }
            }
        }
    }

    #[test]
    fn exact_reductions_are_associative() {
        let halves = |infinity: u16| {
            let finite = [0, 1, infinity - 1, infinity, infinity + 1, infinity + 2, 0x7fff, 0x3c00];
            finite.map(|bits| [bits.to_ne_bytes(), (bits | 0x8000).to_ne_bytes()]).concat()
        };
        let words = [0, 1, 0x3f80_0000, 0x7f80_0000, 0x7f80_0001, 0x7fc0_0000, 0x7fff_ffffu32];
        let words = words.map(|bits| [bits.to_ne_bytes(), (bits | 1 << 31).to_ne_bytes()]).concat();
        let long = [0, 1, 0x3ff0 << 48, 0x7ff0 << 48, 0x7ff0 << 48 | 1, 0x7ff8 << 48, !(1 << 63)];
        let long = long.map(|bits: u64| [bits, bits | 1 << 63].map(u64::to_ne_bytes)).concat();
        let bytes: Vec<[u8; 1]> = [0, 1, 2, 127, 128, 254, 255].map(|byte| [byte]).to_vec();
        check::<f16, Amax, 2>(&halves(0x7c00));
        check::<f16, Amin, 2>(&halves(0x7c00));
        check::<bf16, Amax, 2>(&halves(0x7f80));
        check::<bf16, Amin, 2>(&halves(0x7f80));
        check::<f32, Amax, 4>(&words);
        check::<f32, Amin, 4>(&words);
        check::<f64, Amax, 8>(&long);
        check::<f64, Amin, 8>(&long);
        check::<u32, Sum, 4>(&words);
        check::<u32, Mul, 4>(&words);
        check::<i32, Amin, 4>(&words);
        check::<i8, Amax, 1>(&bytes);
        check::<u8, Mul, 1>(&bytes);
        check::<Bool8, Sum, 1>(&bytes);
        check::<Bool8, Mul, 1>(&bytes);
    }
}
