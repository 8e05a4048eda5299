//! Arithmetic and comparisons, element by element.

use inlay_core::{Arithmetic, Comparison, DType, Unary};

use super::boxes::in_boxes;
use super::copy::copy_to;
use crate::number::{Field, Number, Ordered, dispatch};
use crate::view::Target;
use crate::walk::each_run;
use crate::{Bool8, Dst, Src};

/// `dst = a (op) b`, element by element, or `dst (op)= b` without `a`. Only floats and complex
/// numbers can be divided.
///
/// # Panics
/// When the views differ in shape or dtype, when `dst` overlaps a source, or when integers are
/// divided.
pub fn arithmetic(op: Arithmetic, dst: Dst<'_>, a: Option<Src<'_>>, b: Src<'_>) {
    let dtype = dst.dtype();
    assert!(b.dtype() == dtype && a.is_none_or(|a| a.dtype() == dtype), "one dtype");
    let dst = dst.into_target();
    match a {
        Some(a) => in_boxes(dst, [a, b], &|dst, [a, b]| calculate(op, dst, Some(a), b)),
        None => in_boxes(dst, [b], &|dst, [b]| calculate(op, dst, None, b)),
    }
}

/// [`arithmetic`] of operands that were checked.
fn calculate(op: Arithmetic, dst: Target<'_>, a: Option<Src<'_>>, b: Src<'_>) {
    let dtype = dst.dtype();
    match op {
        Arithmetic::Add => dispatch!(wrapping dtype, T => update(dst, a, b, |a: T, b: T| {
            T::narrow(T::acc_add(a.widen(), b.widen()))
        })),
        Arithmetic::Multiply => dispatch!(wrapping dtype, T => update(dst, a, b, |a: T, b: T| {
            T::narrow(T::acc_mul(a.widen(), b.widen()))
        })),
        Arithmetic::Subtract => {
            dispatch!(wrapping dtype, T => update(dst, a, b, <T as Number>::sub))
        }
        Arithmetic::Divide => dispatch!(field dtype, T => update(dst, a, b, <T as Field>::div),
            else unreachable!("inference casts {dtype} before it divides")),
    }
}

/// `dst = op(a)`, element by element.
///
/// # Panics
/// When the views overlap or differ in shape or dtype.
pub fn unary(op: Unary, dst: Dst<'_>, a: Src<'_>) {
    assert!(a.dtype() == dst.dtype(), "one dtype");
    // A unary operation is done as a binary one that ignores its second operand.
    in_boxes(dst.into_target(), [a], &|dst, [a]| match op {
        Unary::Negative => {
            dispatch!(wrapping a.dtype(), T => map(dst, a, a, |a: T, _| T::negative(a)))
        }
        // A real number is its own conjugate.
        Unary::Conjugate => {
            dispatch!(complex a.dtype(), T => map(dst, a, a, |a: T, _| T::conjugate(a)),
                else copy_to(dst, a))
        }
    });
}

/// `dst = a (op) b` for a comparison, element by element. The result is of bools.
///
/// # Panics
/// When `a` and `b` differ in dtype, `dst` is not of bools, shapes differ, or `dst` overlaps a
/// source.
pub fn compare(op: Comparison, dst: Dst<'_>, a: Src<'_>, b: Src<'_>) {
    assert!(a.dtype() == b.dtype(), "one dtype");
    assert_eq!(dst.dtype(), DType::Bool, "true or false");
    in_boxes(dst.into_target(), [a, b], &|dst, [a, b]| compare_to(op, dst, a, b));
}

/// [`compare`] of operands that were checked.
fn compare_to(op: Comparison, dst: Target<'_>, a: Src<'_>, b: Src<'_>) {
    macro_rules! equality {
        ($T:ident, $a:ident, $b:ident => $value:expr) => {
            dispatch!(wrapping a.dtype(), $T => {
                map(dst, a, b, |$a: $T, $b: $T| Bool8::new($value))
            })
        };
    }
    let equal = || equality!(T, a, b => T::equal(a, b));
    macro_rules! order {
        ($a:ident, $b:ident, $T:ident => $less:expr) => {
            dispatch!(ordered a.dtype(), $T => map(dst, $a, $b, |a: $T, b: $T| Bool8::new($less(a, b))),
                else unreachable!("inference refuses an order of {}", a.dtype()))
        };
    }
    match op {
        Comparison::Equal => equal(),
        Comparison::NotEqual => equality!(T, a, b => !T::equal(a, b)),
        // Only floats and complex numbers may be NaN.
        Comparison::Same => dispatch!(field a.dtype(), T => map(dst, a, b, |a: T, b: T| {
            Bool8::new(T::equal(a, b) | (!T::equal(a, a) & !T::equal(b, b)))
        }), else equal()),
        Comparison::Less => order!(a, b, T => T::less),
        Comparison::LessEqual => order!(a, b, T => T::less_equal),
        Comparison::Greater => order!(b, a, T => T::less),
        Comparison::GreaterEqual => order!(b, a, T => T::less_equal),
    }
}

/// [`map`] with one type. Without `a`, the old values of `dst` are the first operand.
fn update<T: Copy>(dst: Target<'_>, a: Option<Src<'_>>, b: Src<'_>, f: impl Fn(T, T) -> T + Sync) {
    if let Some(a) = a {
        return map(dst, a, b, f);
    }
    dst.expect_apart(&b);
    each_run([dst.layout(), b.layout()], [size_of::<T>(); 2], |run| {
        let [step, step_b] = run.strides;
        // A constant. A captured variable would be loaded, and the loops not vectorized.
        let size = const { size_of::<T>() as isize };
        // SAFETY: the walk stays inside of both layouts, which have dtype `T`, as the caller has
        // checked. `b` does not overlap `dst`, as was just checked. Threads have different runs, so
        // each element is read and written by one thread only.
        unsafe {
            let to = dst.origin().offset(run.offsets[0]);
            let b = b.origin().offset(run.offsets[1]);
            let at = |p: *const u8, k: isize, step: isize| {
                p.offset(k * step).cast::<T>().read_unaligned()
            };
            let change = |k: isize, step: isize, b: T| {
                let to = to.offset(k * step).cast::<T>();
                to.write_unaligned(f(to.read_unaligned(), b));
            };
            // The compiler can vectorize only loops with constant strides. It must also see that
            // the first operand is the destination: a source that might overlap it in another way
            // would prevent that.
            let len = run.len as isize;
            if step == size && step_b == size {
                (0..len).for_each(|k| change(k, size, at(b, k, size)));
            } else if step == size && step_b == 0 {
                let b = at(b, 0, 0);
                (0..len).for_each(|k| change(k, size, b));
            } else {
                (0..len).for_each(|k| change(k, step, at(b, k, step_b)));
            }
        }
    });
}

fn map<T: Copy, U: Copy>(dst: Target<'_>, a: Src<'_>, b: Src<'_>, f: impl Fn(T, T) -> U + Sync) {
    dst.expect_apart(&a);
    dst.expect_apart(&b);
    let sizes = [size_of::<U>(), size_of::<T>(), size_of::<T>()];
    each_run([dst.layout(), a.layout(), b.layout()], sizes, |run| {
        let [step, step_a, step_b] = run.strides;
        // Constants. Captured variables would be loaded, and the loops not vectorized.
        let (size, wide) = const { (size_of::<T>() as isize, size_of::<U>() as isize) };
        // SAFETY: the walk stays inside of all layouts. No source overlaps `dst`, as was just
        // checked. The callers have checked that `a` and `b` have dtype `T` and `dst` has dtype
        // `U`. Threads have different runs.
        unsafe {
            let to = dst.origin().offset(run.offsets[0]);
            let (a, b) = (a.origin().offset(run.offsets[1]), b.origin().offset(run.offsets[2]));
            let at = |p: *const u8, k: isize, step: isize| {
                p.offset(k * step).cast::<T>().read_unaligned()
            };
            // The compiler can vectorize only loops with constant strides.
            let len = run.len as isize;
            let put =
                |k: isize, step, value: U| to.offset(k * step).cast::<U>().write_unaligned(value);
            if step == wide && step_a == size && step_b == size {
                (0..len).for_each(|k| put(k, wide, f(at(a, k, size), at(b, k, size))));
            } else if step == wide && step_a == size && step_b == 0 {
                let b = at(b, 0, 0);
                (0..len).for_each(|k| put(k, wide, f(at(a, k, size), b)));
            } else {
                (0..len).for_each(|k| put(k, step, f(at(a, k, step_a), at(b, k, step_b))));
            }
        }
    });
}
