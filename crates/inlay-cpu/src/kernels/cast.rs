//! Conversion of elements from one dtype to another.

use half::{bf16, f16};
use inlay_core::{DType, Kind};
use num_complex::{Complex32, Complex64};

use super::boxes::in_boxes;
use super::copy::{copy_to, move_run};
use crate::number::{Number, dispatch};
use crate::rounding::{bf16_from_f64, f16_from_f64, f64_from_i128};
use crate::view::Target;
use crate::walk::{Walk, each_run};
use crate::{Bool8, Dst, Src};

/// Converts every element of `src` to the dtype of `dst` and writes it to the same index.
///
/// A float that becomes an integer is truncated and saturates, and NaN becomes 0. Integers wrap.
/// Every number other than 0 becomes true.
///
/// # Panics
/// When the views overlap or differ in shape, or when complex numbers would become real ones.
pub fn cast(dst: Dst<'_>, src: Src<'_>) {
    let dst = dst.into_target();
    dst.expect_apart(&src);
    in_boxes(dst, [src], &|dst, [src]| cast_to(dst, src));
}

/// [`cast`] of views that were checked.
fn cast_to(dst: Target<'_>, src: Src<'_>) {
    let (from, to) = (src.dtype(), dst.dtype());
    match (from, to) {
        (DType::F16, DType::F32) => return convert::<f16, f32>(dst, src, f16::widen_slice),
        (DType::BF16, DType::F32) => return convert::<bf16, f32>(dst, src, bf16::widen_slice),
        (DType::F32, DType::F16) => return convert::<f32, f16>(dst, src, f16::narrow_slice),
        (DType::F32, DType::BF16) => return convert::<f32, bf16>(dst, src, bf16::narrow_slice),
        _ => {}
    }
    // Only pairs that differ in their bits are compiled. An integer that becomes an integer or a
    // bool wraps or is compared with 0, and the sign of the result type does not matter.
    match (from.kind(), to.kind()) {
        (_, Kind::Bool) => dispatch!(wrapping from, S => map::<S, Bool8>(dst, src)),
        (Kind::Bool, Kind::Integer) => dispatch!(unsigned to, D => map::<Bool8, D>(dst, src)),
        (Kind::Bool, _) => {
            dispatch!(field to, D => map::<Bool8, D>(dst, src), else refuse(from, to));
        }
        (Kind::Integer, Kind::Integer) if from.size() == to.size() => copy_to(dst, src),
        (Kind::Integer, Kind::Integer) => dispatch!(integer from, S => {
            dispatch!(unsigned to, D => map::<S, D>(dst, src))
        }, else refuse(from, to)),
        (Kind::Integer, _) => dispatch!(integer from, S => {
            dispatch!(field to, D => map::<S, D>(dst, src), else refuse(from, to))
        }, else refuse(from, to)),
        (Kind::Float, _) => dispatch!(float from, S => {
            dispatch!(number to, D => map::<S, D>(dst, src), else refuse(from, to))
        }, else refuse(from, to)),
        (Kind::Complex, _) => dispatch!(complex from, S => {
            dispatch!(complex to, D => map::<S, D>(dst, src), else refuse(from, to))
        }, else refuse(from, to)),
    }
}

#[cold]
fn refuse(from: DType, to: DType) -> ! {
    panic!("inference refuses a cast of {from} to {to}")
}

fn map<S: CastFrom, D: CastTo>(dst: Target<'_>, src: Src<'_>) {
    each_run([dst.layout(), src.layout()], [size_of::<D>(), size_of::<S>()], |run| {
        let [step, step_from] = run.strides;
        // SAFETY: the walk stays inside of both layouts, and `S` and `D` are the types of their
        // dtypes. `cast` has checked that the views don't overlap. Threads have different runs.
        unsafe {
            let to = dst.origin().offset(run.offsets[0]);
            let from = src.origin().offset(run.offsets[1]);
            let put = |k: isize, step: isize, step_from: isize| {
                let value = from.offset(k * step_from).cast::<S>().read_unaligned();
                to.offset(k * step).cast::<D>().write_unaligned(value.to::<D>());
            };
            // The compiler can vectorize only loops with constant strides.
            let (size, wide) = const { (size_of::<S>() as isize, size_of::<D>() as isize) };
            if [step, step_from] == [wide, size] {
                (0..run.len as isize).for_each(|k| put(k, wide, size));
            } else {
                (0..run.len as isize).for_each(|k| put(k, step, step_from));
            }
        }
    });
}

/// The number of elements that are converted by one conversion of slices.
const MANY: usize = 256;

/// [`map`] for 16-bit floats, by conversions of slices. The CPU may have instructions for them, but
/// the check whether it does takes longer than the conversion of one number. (One by one, the
/// conversion of 4M `f32` to `f16` takes 3.5 ms.)
fn convert<S: CastFrom + Default, D: CastTo + Default>(
    dst: Target<'_>,
    src: Src<'_>,
    many: impl Fn(&[S], &mut [D]) + Sync,
) {
    let walk = Walk::in_memory_order([dst.layout(), src.layout()]);
    walk.parallel(size_of::<S>() + size_of::<D>(), |run| {
        // Elements may be unaligned and strided, but slices may not. So elements are copied to and
        // from arrays.
        let (mut from, mut to) = ([S::default(); MANY], [D::default(); MANY]);
        for start in (0..run.len).step_by(MANY) {
            let len = (run.len - start).min(MANY);
            let at = |n: usize| run.offsets[n] + start as isize * run.strides[n];
            let (size, wide) = (size_of::<S>() as isize, size_of::<D>() as isize);
            // SAFETY: as for `map`; both arrays have room for `len` numbers.
            unsafe {
                let values = src.origin().offset(at(1));
                let [from_mut, to_mut] =
                    [from.as_mut_ptr().cast::<u8>(), to.as_mut_ptr().cast::<u8>()];
                move_run::<S>(from_mut, size, values, run.strides[1], len);
                many(&from[..len], &mut to[..len]);
                move_run::<D>(dst.origin().offset(at(0)), run.strides[0], to_mut, wide, len);
            }
        }
    });
}

/// A source type: converts itself to `i64`, `u64`, `f32`, `f64` or `Complex64`, whichever holds it
/// exactly, and calls the method of [`CastTo`] for that type.
trait CastFrom: Copy {
    fn to<D: CastTo>(self) -> D;
}

/// A destination type: converts each of these types to itself and rounds once.
trait CastTo: Copy {
    fn from_i64(value: i64) -> Self;
    fn from_u64(value: u64) -> Self;
    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
    fn from_complex(value: Complex64) -> Self;
}

macro_rules! cast_from {
    ($($t:ty => $method:ident, |$value:ident| $to:expr);* $(;)?) => { $(
        impl CastFrom for $t {
            #[inline]
            fn to<D: CastTo>(self) -> D {
                let $value = self;
                D::$method($to)
            }
        }
    )* };
}
cast_from!(
    Bool8 => from_u64, |x| u64::from(x.get());
    u8 => from_u64, |x| u64::from(x);
    u16 => from_u64, |x| u64::from(x);
    u32 => from_u64, |x| u64::from(x);
    u64 => from_u64, |x| x;
    i8 => from_i64, |x| i64::from(x);
    i16 => from_i64, |x| i64::from(x);
    i32 => from_i64, |x| i64::from(x);
    i64 => from_i64, |x| x;
    f16 => from_f32, |x| x.to_f32();
    bf16 => from_f32, |x| x.to_f32();
    f32 => from_f32, |x| x;
    f64 => from_f64, |x| x;
    Complex32 => from_complex, |x| Complex64::new(x.re.into(), x.im.into());
    Complex64 => from_complex, |x| x;
);

macro_rules! cast_to {
    ($($t:ty, ($int:ident, $f32:ident, $f64:ident, $complex:ident) =>
        $i:expr, $u:expr, $narrow:expr, $wide:expr, $c:expr);* $(;)?) => { $(
        impl CastTo for $t {
            fn from_i64($int: i64) -> $t { $i }
            fn from_u64($int: u64) -> $t { $u }
            fn from_f32($f32: f32) -> $t { $narrow }
            fn from_f64($f64: f64) -> $t { $wide }
            fn from_complex($complex: Complex64) -> $t { $c }
        }
    )* };
}
macro_rules! cast_to_primitive {
    ($($t:ty),*) => {
        cast_to!($($t, (n, s, d, c) => n as $t, n as $t, s as $t, d as $t, c.re as $t);*);
    };
}
// `cast` refuses complex numbers that would become real ones, so the conversion that drops the
// imaginary part is never compiled.
cast_to_primitive!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);
cast_to!(
    Bool8, (n, s, d, c) =>
        Bool8::new(n != 0), Bool8::new(n != 0), Bool8::new(s != 0.0), Bool8::new(d != 0.0),
        Bool8::new(c.re != 0.0 || c.im != 0.0);
    f16, (n, s, d, c) =>
        f16_from_f64(f64_from_i128(n.into())), f16_from_f64(f64_from_i128(n.into())), f16::from_f32(s),
        f16_from_f64(d), f16_from_f64(c.re);
    bf16, (n, s, d, c) =>
        bf16_from_f64(f64_from_i128(n.into())), bf16_from_f64(f64_from_i128(n.into())), bf16::from_f32(s),
        bf16_from_f64(d), bf16_from_f64(c.re);
    Complex32, (n, s, d, c) =>
        Complex32::new(n as f32, 0.0), Complex32::new(n as f32, 0.0), Complex32::new(s, 0.0),
        Complex32::new(d as f32, 0.0), Complex32::new(c.re as f32, c.im as f32);
    Complex64, (n, s, d, c) =>
        Complex64::new(n as f64, 0.0), Complex64::new(n as f64, 0.0), Complex64::new(s.into(), 0.0),
        Complex64::new(d, 0.0), c;
);
