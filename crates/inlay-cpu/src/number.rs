//! The fifteen element types: how they are stored, added, multiplied, compared and divided.
//!
//! Every bit pattern is a valid value of each of these types. So kernels may read an element from
//! any readable memory; they use unaligned reads, because foreign arrays need not be aligned.

use std::mem::{MaybeUninit, transmute_copy};

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use inlay_core::DType;
use num_complex::{Complex32, Complex64};

use crate::arch::Simd;
use crate::halves;
use crate::memory::Plain;

/// A bool as it is stored in memory. In foreign memory a byte may be neither 0 nor 1; every byte
/// other than 0 is true.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Bool8(u8);

impl Bool8 {
    /// Returns the byte that stores `value`: 0 or 1.
    pub fn new(value: bool) -> Self {
        Bool8(u8::from(value))
    }

    /// Returns whether the byte is not 0.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

/// A Rust type that is the element type of a tensor.
///
/// The `unsafe` code of the kernels assumes that `Stored` has the size of the dtype. That is checked
/// at compile time for each type. The trait is sealed, so no other crate can implement it:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy)]
/// struct Wide;
/// impl inlay_cpu::Element for Wide {
///     const DTYPE: inlay_core::DType = inlay_core::DType::U8;
///     type Stored = f64;
///     fn store(self) -> f64 {
///         0.0
///     }
///     fn load(_: f64) -> Self {
///         Wide
///     }
/// }
/// ```
pub trait Element: Copy + Send + Sync + 'static + private::Sealed {
    /// The dtype of this element type.
    const DTYPE: DType;
    /// The type of an element in memory.
    type Stored: Number;
    /// Converts a value to its form in memory.
    fn store(self) -> Self::Stored;
    /// Converts an element in memory to a value.
    fn load(stored: Self::Stored) -> Self;
}

mod private {
    pub trait Sealed {}
}

/// Fails to compile unless a stored element has the dtype of `T`, and the size of that dtype.
const fn check_element<T: Element>() {
    assert!(T::DTYPE as u8 == <T::Stored as Number>::DTYPE as u8, "one dtype");
    assert!(size_of::<T::Stored>() == T::DTYPE.size(), "the size of the dtype");
}

/// Converts each element of an array. It has no closure, because a closure that is not inlined is not
/// compiled for the level. The array is not initialized first: the compiler would assemble one of its
/// vectors element by element. (Sums of 256 rows of 256 `f32`: 8.5 us instead of 10.)
macro_rules! widened {
    ($values:ident, $widen:expr) => {{
        let mut wide = [const { MaybeUninit::uninit() }; N];
        for k in 0..N {
            wide[k].write($widen($values[k]));
        }
        // SAFETY: all elements were just written. Both arrays have one size.
        unsafe { transmute_copy(&wide) }
    }};
}

/// An element type as a number that can be added and multiplied. All fifteen types implement it.
pub trait Number: Copy + Send + Sync + 'static + private::Sealed {
    /// The dtype of this number type.
    const DTYPE: DType;
    /// The accumulator of sums and products. The result is rounded once, when it is converted back.
    type Acc: Plain;
    /// The accumulator of sums for means. For integers it is so wide that it can't overflow.
    type MeanAcc: Plain;
    /// Whether the accumulator has the precision of the number itself, so that a partial result can
    /// be stored as a number without a rounding error.
    const ACC_IS_SELF: bool;

    /// Converts a number to the accumulator. This is exact.
    fn widen(self) -> Self::Acc;
    /// Converts the accumulator to a number and rounds once.
    fn narrow(acc: Self::Acc) -> Self;
    /// Returns the sum of two accumulators. Integers wrap.
    fn acc_add(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Returns the product of two accumulators. Integers wrap.
    fn acc_mul(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Converts a number to the accumulator for means. This is exact.
    fn mean_widen(self) -> Self::MeanAcc;
    /// Returns the sum of two accumulators for means.
    fn mean_add(a: Self::MeanAcc, b: Self::MeanAcc) -> Self::MeanAcc;
    /// Divides the sum of `count` numbers by `count`. Integers round down.
    fn mean_of(sum: Self::MeanAcc, count: usize) -> Self;
    /// [`Number::widen`] of an array, in a loop that is compiled for one instruction set level.
    #[inline(always)]
    fn widen_many<S: Simd, const N: usize>(_simd: S, values: [Self; N]) -> [Self::Acc; N] {
        widened!(values, Self::widen)
    }
    /// [`Number::mean_widen`] of an array, in a loop that is compiled for one instruction set
    /// level.
    #[inline(always)]
    fn mean_widen_many<S: Simd, const N: usize>(_simd: S, values: [Self; N]) -> [Self::MeanAcc; N] {
        widened!(values, Self::mean_widen)
    }
    /// [`Number::widen`] for each element of a slice. Both slices have the same length. For 16-bit
    /// floats this is faster than one call per number.
    fn widen_slice(values: &[Self], to: &mut [Self::Acc]) {
        to.iter_mut().zip(values).for_each(|(to, value)| *to = value.widen());
    }
    /// [`Number::narrow`] for each element of a slice. Both slices have the same length.
    fn narrow_slice(acc: &[Self::Acc], to: &mut [Self]) {
        to.iter_mut().zip(acc).for_each(|(to, &acc)| *to = Self::narrow(acc));
    }
    /// [`Number::mean_widen`] for each element of a slice. Both slices have the same length.
    fn mean_widen_slice(values: &[Self], to: &mut [Self::MeanAcc]) {
        to.iter_mut().zip(values).for_each(|(to, value)| *to = value.mean_widen());
    }
    /// [`Number::mean_of`] for each element of a slice. Both slices have the same length. The
    /// contents of `sums` are unspecified afterwards.
    fn mean_of_slice(sums: &mut [Self::MeanAcc], count: usize, to: &mut [Self]) {
        to.iter_mut().zip(sums).for_each(|(to, sum)| *to = Self::mean_of(*sum, count));
    }
    /// Returns `a - b`. Integers wrap.
    fn sub(a: Self, b: Self) -> Self;
    /// Returns the number with the opposite sign. Integers wrap; a bool is returned as it is.
    fn negative(self) -> Self;
    /// Returns the complex conjugate. A real number is returned as it is.
    fn conjugate(self) -> Self {
        self
    }
    /// Returns whether the numbers are equal.
    fn equal(a: Self, b: Self) -> bool;
}

/// Numbers that are ordered: all types but the complex ones.
pub(crate) trait Ordered: Number {
    /// Returns the larger number, `a` if they are equal, or NaN if one of them is NaN.
    fn max(a: Self, b: Self) -> Self;
    /// Returns the smaller number, `a` if they are equal, or NaN if one of them is NaN.
    fn min(a: Self, b: Self) -> Self;
    /// [`Ordered::max`] of accumulators.
    fn acc_max(a: Self::Acc, b: Self::Acc) -> Self::Acc {
        Self::max(Self::narrow(a), Self::narrow(b)).widen()
    }
    /// [`Ordered::min`] of accumulators.
    fn acc_min(a: Self::Acc, b: Self::Acc) -> Self::Acc {
        Self::min(Self::narrow(a), Self::narrow(b)).widen()
    }
    /// [`Ordered::acc_max`] of numbers, narrowed to a number again.
    #[inline(always)]
    fn merge_max(a: Self, b: Self) -> Self {
        Self::narrow(Self::acc_max(a.widen(), b.widen()))
    }
    /// [`Ordered::acc_min`] of numbers, narrowed to a number again.
    #[inline(always)]
    fn merge_min(a: Self, b: Self) -> Self {
        Self::narrow(Self::acc_min(a.widen(), b.widen()))
    }
    /// Returns whether `a < b`.
    fn less(a: Self, b: Self) -> bool;
    /// Returns whether `a <= b`.
    fn less_equal(a: Self, b: Self) -> bool;
}

/// Numbers whose quotient has the same type: floats and complex numbers.
pub(crate) trait Field: Number {
    /// Returns `a / b`.
    fn div(a: Self, b: Self) -> Self;
}

macro_rules! element {
    ($($t:ty => $dtype:ident),*) => { $(
        const _: () = check_element::<$t>();
        impl private::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            type Stored = $t;
            fn store(self) -> $t { self }
            fn load(stored: $t) -> $t { stored }
        }
    )* };
}
element!(u8 => U8, i8 => I8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64);
element!(f16 => F16, bf16 => BF16, f32 => F32, f64 => F64, Complex32 => C64, Complex64 => C128);

const _: () = check_element::<bool>();
impl private::Sealed for bool {}
impl private::Sealed for Bool8 {}

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    type Stored = Bool8;
    fn store(self) -> Bool8 {
        Bool8::new(self)
    }
    fn load(stored: Bool8) -> bool {
        stored.get()
    }
}

macro_rules! integer {
    ($($t:ty => $dtype:ident, $acc:ty, $mean:ty);* $(;)?) => { $(
        impl Number for $t {
            const DTYPE: DType = DType::$dtype;
            type Acc = $acc;
            type MeanAcc = $mean;
            const ACC_IS_SELF: bool = true;
            // The accumulator is the unsigned type of the same width. Wrapping addition and
            // multiplication give the same bits in both types.
            fn widen(self) -> $acc { self as $acc }
            fn narrow(acc: $acc) -> $t { acc as $t }
            fn acc_add(a: $acc, b: $acc) -> $acc { a.wrapping_add(b) }
            fn acc_mul(a: $acc, b: $acc) -> $acc { a.wrapping_mul(b) }
            fn mean_widen(self) -> $mean { self as $mean }
            fn mean_add(a: $mean, b: $mean) -> $mean { a.wrapping_add(b) }
            fn mean_of(sum: $mean, count: usize) -> $t { sum.div_euclid(count as $mean) as $t }
            // Inlined into a loop for AVX2, the divisions would be vectorized, element by element
            // and in 64 bits. (Means of 50k rows of 64 `u8`: 2.6 ms instead of 1.1.)
            #[inline(never)]
            fn mean_of_slice(sums: &mut [$mean], count: usize, to: &mut [$t]) {
                to.iter_mut().zip(sums).for_each(|(to, sum)| *to = <$t>::mean_of(*sum, count));
            }
            fn sub(a: $t, b: $t) -> $t { a.wrapping_sub(b) }
            fn negative(self) -> $t { (0 as $t).wrapping_sub(self) }
            fn equal(a: $t, b: $t) -> bool { a == b }
        }
        impl Ordered for $t {
            fn max(a: $t, b: $t) -> $t { Ord::max(a, b) }
            fn min(a: $t, b: $t) -> $t { Ord::min(a, b) }
            fn less(a: $t, b: $t) -> bool { a < b }
            fn less_equal(a: $t, b: $t) -> bool { a <= b }
        }
    )* };
}
// The types are: number, accumulator, accumulator for means. An i64 holds the sum of 2^47 numbers
// of 16 bits, and an i128 the sum of 2^63 numbers of 64 bits.
integer!(
    u8 => U8, u8, i64;
    i8 => I8, u8, i64;
    u16 => U16, u16, i64;
    i16 => I16, u16, i64;
    u32 => U32, u32, i128;
    i32 => I32, u32, i128;
    u64 => U64, u64, i128;
    i64 => I64, u64, i128;
);

/// The quotient of complex numbers by Smith's method. Both parts are scaled by the larger part of
/// the divisor, because the square of a large or small divisor would overflow or underflow.
macro_rules! smith {
    ($t:ty) => {
        |a: $t, b: $t| {
            if b.re.abs() >= b.im.abs() {
                if b.re == 0.0 && b.im == 0.0 {
                    return <$t>::new(a.re / b.re.abs(), a.im / b.re.abs());
                }
                let ratio = b.im / b.re;
                let scale = 1.0 / (b.re + b.im * ratio);
                <$t>::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
            } else {
                let ratio = b.re / b.im;
                let scale = 1.0 / (b.im + b.re * ratio);
                <$t>::new((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
            }
        }
    };
}

/// Conversions of slices of 16-bit floats. They use F16C if the CPU has it. The check for F16C
/// takes longer than the conversion of one number, so it is done once per slice.
macro_rules! half_slices {
    () => {
        fn widen_slice(values: &[Self], to: &mut [f32]) {
            values.convert_to_f32_slice(to);
        }
        fn narrow_slice(acc: &[f32], to: &mut [Self]) {
            to.convert_from_f32_slice(acc);
        }
        fn mean_widen_slice(values: &[Self], to: &mut [f32]) {
            Self::widen_slice(values, to);
        }
        fn mean_of_slice(sums: &mut [f32], count: usize, to: &mut [Self]) {
            sums.iter_mut().for_each(|sum| *sum /= count as f32);
            Self::narrow_slice(sums, to);
        }
    };
}

macro_rules! f16_slices {
    () => {
        half_slices!();
        #[inline(always)]
        fn widen_many<S: Simd, const N: usize>(simd: S, values: [f16; N]) -> [f32; N] {
            simd.widen_halves(values)
        }
        #[inline(always)]
        fn mean_widen_many<S: Simd, const N: usize>(simd: S, values: [f16; N]) -> [f32; N] {
            simd.widen_halves(values)
        }
    };
}

macro_rules! field {
    ($($t:ty => $dtype:ident, $acc:ty, $widen:expr, $narrow:expr, $count:expr, $div:expr, $conj:expr $(, $slices:ident)?);* $(;)?) => { $(
        impl Number for $t {
            const DTYPE: DType = DType::$dtype;
            type Acc = $acc;
            type MeanAcc = $acc;
            const ACC_IS_SELF: bool = size_of::<$acc>() == size_of::<$t>();
            $($slices!();)?
            fn widen(self) -> $acc { ($widen)(self) }
            fn narrow(acc: $acc) -> $t { ($narrow)(acc) }
            fn acc_add(a: $acc, b: $acc) -> $acc { a + b }
            fn acc_mul(a: $acc, b: $acc) -> $acc { a * b }
            fn mean_widen(self) -> $acc { self.widen() }
            fn mean_add(a: $acc, b: $acc) -> $acc { a + b }
            fn mean_of(sum: $acc, count: usize) -> $t { <$t>::narrow(sum / ($count)(count)) }
            fn sub(a: $t, b: $t) -> $t { <$t>::narrow(a.widen() - b.widen()) }
            fn negative(self) -> $t { -self }
            fn conjugate(self) -> $t { ($conj)(self) }
            fn equal(a: $t, b: $t) -> bool { a == b }
        }
        impl Field for $t {
            fn div(a: $t, b: $t) -> $t { <$t>::narrow(($div)(a.widen(), b.widen())) }
        }
    )* };
}
field!(
    f16 => F16, f32, f16::to_f32, f16::from_f32, |n| n as f32, |a, b| a / b, |x| x, f16_slices;
    bf16 => BF16, f32, bf16::to_f32, bf16::from_f32, |n| n as f32, |a, b| a / b, |x| x, half_slices;
    f32 => F32, f32, |x| x, |x| x, |n| n as f32, |a, b| a / b, |x| x;
    f64 => F64, f64, |x| x, |x| x, |n| n as f64, |a, b| a / b, |x| x;
    Complex32 => C64, Complex32, |x| x, |x| x, |n| n as f32, smith!(Complex32), |x: Complex32| x.conj();
    Complex64 => C128, Complex64, |x| x, |x| x, |n| n as f64, smith!(Complex64), |x: Complex64| x.conj();
);

macro_rules! ordered_float {
    ($($t:ty $(, $format:path)?);*) => { $(
        impl Ordered for $t {
            $(
                #[inline(always)]
                fn merge_max(a: $t, b: $t) -> $t {
                    <$t>::from_bits(halves::larger($format, a.to_bits(), b.to_bits()))
                }
                #[inline(always)]
                fn merge_min(a: $t, b: $t) -> $t {
                    <$t>::from_bits(halves::smaller($format, a.to_bits(), b.to_bits()))
                }
            )?
            // `if b > a { b } else { a }` is one instruction, and returns `a` if `a` is NaN. So
            // only `b` has to be tested for NaN, and that test does not depend on the comparison.
            fn max(a: $t, b: $t) -> $t { if b.is_nan() { b } else if b > a { b } else { a } }
            fn min(a: $t, b: $t) -> $t { if b.is_nan() { b } else if b < a { b } else { a } }
            // Widening keeps the order, so accumulators are compared without narrowing them.
            fn acc_max(a: Self::Acc, b: Self::Acc) -> Self::Acc {
                let larger = if b > a { b } else { a };
                if b.is_nan() { b } else { larger }
            }
            fn acc_min(a: Self::Acc, b: Self::Acc) -> Self::Acc {
                let smaller = if b < a { b } else { a };
                if b.is_nan() { b } else { smaller }
            }
            fn less(a: $t, b: $t) -> bool { a < b }
            fn less_equal(a: $t, b: $t) -> bool { a <= b }
        }
    )* };
}
ordered_float!(f16, halves::F16; bf16, halves::BF16; f32; f64);

/// The sum of bools is `or`, and the product is `and`. Callers refuse means and differences of
/// bools, so their functions are never called.
impl Number for Bool8 {
    const DTYPE: DType = DType::Bool;
    type Acc = u8;
    type MeanAcc = u8;
    const ACC_IS_SELF: bool = true;
    fn widen(self) -> u8 {
        u8::from(self.get())
    }
    fn narrow(acc: u8) -> Bool8 {
        Bool8(acc)
    }
    fn acc_add(a: u8, b: u8) -> u8 {
        a | b
    }
    fn acc_mul(a: u8, b: u8) -> u8 {
        a & b
    }
    fn mean_widen(self) -> u8 {
        self.widen()
    }
    fn mean_add(a: u8, b: u8) -> u8 {
        a | b
    }
    fn mean_of(sum: u8, _count: usize) -> Bool8 {
        Bool8(sum)
    }
    fn sub(a: Bool8, b: Bool8) -> Bool8 {
        Bool8::new(a.get() ^ b.get())
    }
    fn negative(self) -> Bool8 {
        self
    }
    fn equal(a: Bool8, b: Bool8) -> bool {
        a.get() == b.get()
    }
}

impl Ordered for Bool8 {
    fn max(a: Bool8, b: Bool8) -> Bool8 {
        Bool8::new(a.get() | b.get())
    }
    fn min(a: Bool8, b: Bool8) -> Bool8 {
        Bool8::new(a.get() & b.get())
    }
    fn less(a: Bool8, b: Bool8) -> bool {
        !a.get() & b.get()
    }
    fn less_equal(a: Bool8, b: Bool8) -> bool {
        a.get() <= b.get()
    }
}

/// Runs `$body` with `$T` as the type of `$dtype`: `dispatch!(dtype, T => f::<T>())`. A word before
/// the dtype limits the dtypes, and so the number of copies of the body; for other dtypes the
/// expression after `else` is the value. The words are `ordered` and `field` (the dtypes that
/// implement the trait), `number` (all but bool), `real` (numbers that are ordered), `integer`,
/// `float` and `complex`. The words `wrapping` (all dtypes) and `unsigned` (integers) replace the
/// dtype by [`unsigned`] of it.
macro_rules! dispatch {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            Bool $crate::Bool8, U8 u8, I8 i8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64,
            U64 u64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64,
            C64 num_complex::Complex32, C128 num_complex::Complex64;)
    };
    (ordered $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            Bool $crate::Bool8, U8 u8, I8 i8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64,
            U64 u64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64;
            _ => $other)
    };
    (real $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            U8 u8, I8 i8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64;
            _ => $other)
    };
    (number $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            U8 u8, I8 i8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64,
            C64 num_complex::Complex32, C128 num_complex::Complex64;
            _ => $other)
    };
    (wrapping $dtype:expr, $T:ident => $body:expr) => {
        $crate::number::dispatch!(@match $crate::number::unsigned($dtype), $T => $body;
            Bool $crate::Bool8, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64,
            C64 num_complex::Complex32, C128 num_complex::Complex64;
            dtype => unreachable!("{dtype} is signed"))
    };
    (unsigned $dtype:expr, $T:ident => $body:expr) => {
        $crate::number::dispatch!(@match $crate::number::unsigned($dtype), $T => $body;
            U8 u8, U16 u16, U32 u32, U64 u64;
            dtype => unreachable!("{dtype} is no unsigned integer"))
    };
    (field $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64,
            C64 num_complex::Complex32, C128 num_complex::Complex64;
            _ => $other)
    };
    (float $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64;
            _ => $other)
    };
    (complex $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            C64 num_complex::Complex32, C128 num_complex::Complex64;
            _ => $other)
    };
    (integer $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            U8 u8, I8 i8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64;
            _ => $other)
    };
    (@match $dtype:expr, $T:ident => $body:expr; $($name:ident $t:ty),*; $($rest:pat => $other:expr)?) => {
        match $dtype {
            $(inlay_core::DType::$name => {
                type $T = $t;
                $body
            })*
            $($rest => $other,)?
        }
    };
}
pub(crate) use dispatch;

/// Returns the unsigned dtype of the same size for a signed integer, otherwise the dtype itself.
/// Sums, products and differences of integers wrap, so they have the same bits in both dtypes, and
/// so have comparisons for equality. One copy of a kernel serves both.
pub(crate) fn unsigned(dtype: DType) -> DType {
    match dtype {
        DType::I8 => DType::U8,
        DType::I16 => DType::U16,
        DType::I32 => DType::U32,
        DType::I64 => DType::U64,
        dtype => dtype,
    }
}

/// Runs `$body` with `$W` as the unsigned integer of `$size` bytes (1, 2, 4, 8 or 16), for kernels
/// that only move elements.
macro_rules! dispatch_width {
    ($size:expr, $W:ident => $body:expr) => {
        match $size {
            1 => {
                type $W = u8;
                $body
            }
            2 => {
                type $W = u16;
                $body
            }
            4 => {
                type $W = u32;
                $body
            }
            8 => {
                type $W = u64;
                $body
            }
            _ => {
                type $W = u128;
                $body
            }
        }
    };
}
pub(crate) use dispatch_width;
