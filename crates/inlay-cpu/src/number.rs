//! What kernels need to know of the fifteen element types.
//!
//! Every pattern of bits is a value of each of these types, so elements can be read from any
//! memory, aligned or not.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use inlay_core::DType;
use num_complex::{Complex32, Complex64};

use crate::arch::Simd;
use crate::halves;
use crate::memory::Plain;

/// A bool as it lies in memory: foreign bytes other than 0 and 1 count as true.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Bool8(u8);

impl Bool8 {
    /// The byte of a bool.
    pub fn new(value: bool) -> Self {
        Bool8(u8::from(value))
    }

    /// The bool of a byte.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

/// A Rust type that tensors hold.
///
/// Kernels rely on it that `Stored` is as large as the dtype says, so the trait is sealed:
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
    /// Its dtype.
    const DTYPE: DType;
    /// How it lies in memory.
    type Stored: Number;
    /// To memory.
    fn store(self) -> Self::Stored;
    /// From memory.
    fn load(stored: Self::Stored) -> Self;
}

mod private {
    pub trait Sealed {}
}

/// Numbers that can be added and multiplied: all fifteen.
pub trait Number: Copy + Send + Sync + 'static {
    /// Its dtype.
    const DTYPE: DType;
    /// In which sums and products are taken, to be rounded once at the end.
    type Acc: Plain;
    /// In which sums for means are taken; it can't overflow.
    type MeanAcc: Plain;
    /// Whether the accumulator holds no more than the number itself.
    const ACC_IS_SELF: bool;

    /// To the accumulator.
    fn widen(self) -> Self::Acc;
    /// From the accumulator, rounding once.
    fn narrow(acc: Self::Acc) -> Self;
    /// Sum of accumulators; integers wrap.
    fn acc_add(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Product of accumulators; integers wrap.
    fn acc_mul(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// To the mean's accumulator.
    fn mean_widen(self) -> Self::MeanAcc;
    /// Sum of mean accumulators.
    fn mean_add(a: Self::MeanAcc, b: Self::MeanAcc) -> Self::MeanAcc;
    /// The sum of `count` numbers divided by it; integers round down.
    fn mean_of(sum: Self::MeanAcc, count: usize) -> Self;
    /// [`Number::widen`] of many, in code that is compiled for a level.
    #[inline(always)]
    fn widen_many<S: Simd, const N: usize>(_simd: S, values: [Self; N]) -> [Self::Acc; N] {
        values.map(Self::widen)
    }
    /// [`Number::mean_widen`] of many, in code that is compiled for a level.
    #[inline(always)]
    fn mean_widen_many<S: Simd, const N: usize>(_simd: S, values: [Self; N]) -> [Self::MeanAcc; N] {
        values.map(Self::mean_widen)
    }
    /// [`Number::widen`] for slices of one length, where that is faster than one by one.
    fn widen_slice(values: &[Self], to: &mut [Self::Acc]) {
        to.iter_mut().zip(values).for_each(|(to, value)| *to = value.widen());
    }
    /// [`Number::narrow`] for slices of one length.
    fn narrow_slice(acc: &[Self::Acc], to: &mut [Self]) {
        to.iter_mut().zip(acc).for_each(|(to, &acc)| *to = Self::narrow(acc));
    }
    /// [`Number::mean_widen`] for slices of one length.
    fn mean_widen_slice(values: &[Self], to: &mut [Self::MeanAcc]) {
        to.iter_mut().zip(values).for_each(|(to, value)| *to = value.mean_widen());
    }
    /// [`Number::mean_of`] for slices of one length.
    fn mean_of_slice(sums: &mut [Self::MeanAcc], count: usize, to: &mut [Self]) {
        to.iter_mut().zip(sums).for_each(|(to, sum)| *to = Self::mean_of(*sum, count));
    }
    /// Difference; integers wrap.
    fn sub(a: Self, b: Self) -> Self;
    /// The number with the other sign; integers wrap, a bool is its own.
    fn negative(self) -> Self;
    /// The complex conjugate; a real number is its own.
    fn conjugate(self) -> Self {
        self
    }
    /// Whether they are equal.
    fn equal(a: Self, b: Self) -> bool;
}

/// Numbers with an order: all but the complex ones.
pub(crate) trait Ordered: Number {
    /// The larger, the first of equals, or NaN if one is.
    fn max(a: Self, b: Self) -> Self;
    /// The smaller, the first of equals, or NaN if one is.
    fn min(a: Self, b: Self) -> Self;
    /// The larger of accumulators.
    fn acc_max(a: Self::Acc, b: Self::Acc) -> Self::Acc {
        Self::max(Self::narrow(a), Self::narrow(b)).widen()
    }
    /// The smaller of accumulators.
    fn acc_min(a: Self::Acc, b: Self::Acc) -> Self::Acc {
        Self::min(Self::narrow(a), Self::narrow(b)).widen()
    }
    /// [`Ordered::acc_max`] of numbers that stay numbers.
    #[inline(always)]
    fn merge_max(a: Self, b: Self) -> Self {
        Self::narrow(Self::acc_max(a.widen(), b.widen()))
    }
    /// [`Ordered::acc_min`] of numbers that stay numbers.
    #[inline(always)]
    fn merge_min(a: Self, b: Self) -> Self {
        Self::narrow(Self::acc_min(a.widen(), b.widen()))
    }
    /// Whether `a < b`.
    fn less(a: Self, b: Self) -> bool;
    /// Whether `a <= b`.
    fn less_equal(a: Self, b: Self) -> bool;
}

/// Numbers that divide to their own type: floats and complex.
pub(crate) trait Field: Number {
    /// Quotient.
    fn div(a: Self, b: Self) -> Self;
}

macro_rules! element {
    ($($t:ty => $dtype:ident),*) => { $(
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

impl private::Sealed for bool {}

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
            // Wrapping in a wider unsigned type and cutting off is wrapping in the type itself.
            fn widen(self) -> $acc { self as $acc }
            fn narrow(acc: $acc) -> $t { acc as $t }
            fn acc_add(a: $acc, b: $acc) -> $acc { a.wrapping_add(b) }
            fn acc_mul(a: $acc, b: $acc) -> $acc { a.wrapping_mul(b) }
            fn mean_widen(self) -> $mean { self as $mean }
            fn mean_add(a: $mean, b: $mean) -> $mean { a.wrapping_add(b) }
            fn mean_of(sum: $mean, count: usize) -> $t { sum.div_euclid(count as $mean) as $t }
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
// The mean's sum holds 2^47 numbers of 16 bits in an i64, and 2^63 of 64 bits in an i128.
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

/// The quotient of complex numbers by Smith's method: scaled by the larger part of the divisor, so
/// that divisors whose squares leave the range divide right.
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

/// Sixteen-bit floats are converted many at a time, by F16C where the CPU has it: asking what it has
/// costs more than to convert a number.
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
            // The larger or else the first is one instruction, which gives the first where that is
            // NaN; so it remains to see whether the second is, for which it need not wait.
            fn max(a: $t, b: $t) -> $t { if b.is_nan() { b } else if b > a { b } else { a } }
            fn min(a: $t, b: $t) -> $t { if b.is_nan() { b } else if b < a { b } else { a } }
            // Widening keeps the order, so that nothing is narrowed on the way.
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

/// Sum is or, product is and; there is no mean and no difference.
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

/// Runs `$body` with `$T` as the type of `$dtype`: `dispatch!(dtype, T => f::<T>())`. A list in
/// front limits the dtypes; for others the part after `else` is the value.
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
    (field $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64,
            C64 num_complex::Complex32, C128 num_complex::Complex64;
            _ => $other)
    };
    (integer $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::number::dispatch!(@match $dtype, $T => $body;
            U8 u8, I8 i8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64;
            _ => $other)
    };
    (@match $dtype:expr, $T:ident => $body:expr; $($name:ident $t:ty),*; $(_ => $other:expr)?) => {
        match $dtype {
            $(inlay_core::DType::$name => {
                type $T = $t;
                $body
            })*
            $(_ => $other,)?
        }
    };
}
pub(crate) use dispatch;

/// Runs `$body` with `$W` as the unsigned word of `$size` bytes, for kernels that only move.
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
