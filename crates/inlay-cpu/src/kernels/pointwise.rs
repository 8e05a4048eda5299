//! Element by element: arithmetic, comparison, selection.

use inlay_core::{Arithmetic, Comparison, Unary};

use super::copy::move_run;
use crate::number::{Field, Number, Ordered, dispatch, dispatch_width};
use crate::walk::{Run, Walk};
use crate::{Bool8, Dst, Src};

/// `dst = a (op) b`, all of one dtype and shape. Division is for floats and complex numbers.
pub fn arithmetic(op: Arithmetic, dst: Dst<'_>, a: Src<'_>, b: Src<'_>) {
    assert!(a.dtype() == b.dtype() && a.dtype() == dst.dtype(), "one dtype");
    match op {
        Arithmetic::Add => dispatch!(a.dtype(), T => map(dst, a, b, |a: T, b: T| {
            T::narrow(T::acc_add(a.widen(), b.widen()))
        })),
        Arithmetic::Multiply => dispatch!(a.dtype(), T => map(dst, a, b, |a: T, b: T| {
            T::narrow(T::acc_mul(a.widen(), b.widen()))
        })),
        Arithmetic::Subtract => dispatch!(a.dtype(), T => map(dst, a, b, <T as Number>::sub)),
        Arithmetic::Divide => dispatch!(field a.dtype(), T => map(dst, a, b, <T as Field>::div),
            else unreachable!("inference casts {} before it divides", a.dtype())),
    }
}

/// `dst = op(a)`, both of one dtype and shape.
pub fn unary(op: Unary, dst: Dst<'_>, a: Src<'_>) {
    assert!(a.dtype() == dst.dtype(), "one dtype");
    // A unary operation is a binary one that looks at its first operand alone.
    match op {
        Unary::Negative => dispatch!(a.dtype(), T => map(dst, a, a, |a: T, _| T::negative(a))),
        Unary::Conjugate => dispatch!(a.dtype(), T => map(dst, a, a, |a: T, _| T::conjugate(a))),
    }
}

/// `dst = a (op) b` as bool; `a` and `b` of one dtype, all of one shape.
pub fn compare(op: Comparison, dst: Dst<'_>, a: Src<'_>, b: Src<'_>) {
    assert!(a.dtype() == b.dtype(), "one dtype");
    macro_rules! with {
        ($T:ident, $a:ident, $b:ident => $value:expr) => {
            map(dst, a, b, |$a: $T, $b: $T| Bool8::new($value))
        };
    }
    macro_rules! order {
        ($T:ident, $a:ident, $b:ident => $value:expr) => {
            dispatch!(ordered a.dtype(), $T => with!($T, $a, $b => $value),
                else unreachable!("inference refuses an order of {}", a.dtype()))
        };
    }
    match op {
        Comparison::Equal => dispatch!(a.dtype(), T => with!(T, a, b => T::equal(a, b))),
        Comparison::NotEqual => dispatch!(a.dtype(), T => with!(T, a, b => !T::equal(a, b))),
        Comparison::Same => dispatch!(a.dtype(), T => with!(T, a, b => {
            T::equal(a, b) | (!T::equal(a, a) & !T::equal(b, b))
        })),
        Comparison::Less => order!(T, a, b => T::less(a, b)),
        Comparison::LessEqual => order!(T, a, b => T::less_equal(a, b)),
        Comparison::Greater => order!(T, a, b => T::less(b, a)),
        Comparison::GreaterEqual => order!(T, a, b => T::less_equal(b, a)),
    }
}

/// `dst = if condition { a } else { b }`, all of one shape. `b` may be `None` when `dst` holds it
/// already.
pub fn select(dst: Dst<'_>, condition: Src<'_>, a: Src<'_>, b: Option<Src<'_>>) {
    dst.expect_apart(&condition);
    dst.expect_apart(&a);
    let size = dst.same_size(&a);
    let b = match b {
        Some(b) => {
            dst.expect_apart(&b);
            dst.same_size(&b);
            b
        }
        None => dst.as_src(),
    };
    let layouts = [dst.layout(), condition.layout(), a.layout(), b.layout()];
    let few = Run::of_few(layouts, [size, 1, size, size]);
    dispatch_width!(size, W => {
        // SAFETY: a run of these layouts, which lie apart as was just seen.
        let select = |run: Run<4>| unsafe { select_run::<W>(run, dst, condition, a, b) };
        match few {
            Some(run) => select(run),
            None => Walk::in_memory_order(layouts).parallel(3 * size + 1, select),
        }
    });
}

/// # Safety
/// The run lies inside of all layouts, whose elements have the width of `W`; the destination lies apart
/// from the others, but may be `b` itself.
unsafe fn select_run<W: Copy>(
    run: Run<4>,
    dst: Dst<'_>,
    condition: Src<'_>,
    a: Src<'_>,
    b: Src<'_>,
) {
    let [step, step_if, step_a, step_b] = run.strides;
    // SAFETY: the caller's promise.
    unsafe {
        let to = dst.origin().offset(run.offsets[0]);
        let chosen = condition.origin().offset(run.offsets[1]);
        let (a, b) = (a.origin().offset(run.offsets[2]), b.origin().offset(run.offsets[3]));
        let choose = |k: isize, [step, step_if, step_a, step_b]: [isize; 4]| {
            // Both are read: a choice of values makes vectors, one of places makes branches.
            let x = a.offset(k * step_a).cast::<W>().read_unaligned();
            let y = b.offset(k * step_b).cast::<W>().read_unaligned();
            let chosen = chosen.offset(k * step_if).cast::<Bool8>().read().get();
            let word = if chosen { x } else { y };
            to.offset(k * step).cast::<W>().write_unaligned(word);
        };
        // The loops that the compiler can turn into vectors have constant steps.
        let (size, len) = (size_of::<W>() as isize, run.len as isize);
        if run.strides == [size, 1, 0, size] && std::ptr::eq(b, to) {
            // Through one pointer: of two that are the same, none could be read ahead.
            let x = a.cast::<W>().read_unaligned();
            (0..len).for_each(|k| {
                let (place, chosen) = (to.offset(k * size).cast::<W>(), chosen.offset(k));
                let y = place.read_unaligned();
                let word = if chosen.cast::<Bool8>().read().get() { x } else { y };
                place.write_unaligned(word);
            });
        } else if run.strides == [size, 1, size, size] {
            (0..len).for_each(|k| choose(k, [size, 1, size, size]));
        } else if run.strides == [size, 1, 0, size] {
            let (to, x, b) = (to.cast::<W>(), a.cast::<W>().read_unaligned(), b.cast::<W>());
            for k in 0..run.len {
                let y = b.add(k).read_unaligned();
                let chosen = chosen.add(k).cast::<Bool8>().read().get();
                to.add(k).write_unaligned(if chosen { x } else { y });
            }
        } else if step_if == 0 {
            let (from, step_from) =
                if chosen.cast::<Bool8>().read().get() { (a, step_a) } else { (b, step_b) };
            // In place, what is kept is there already.
            if !std::ptr::eq(from, to) {
                move_run::<W>(to, step, from, step_from, run.len);
            }
        } else {
            (0..len).for_each(|k| choose(k, [step, step_if, step_a, step_b]));
        }
    }
}

fn map<T: Copy, U: Copy>(dst: Dst<'_>, a: Src<'_>, b: Src<'_>, f: impl Fn(T, T) -> U + Sync) {
    dst.expect_apart(&a);
    dst.expect_apart(&b);
    let walk = Walk::in_memory_order([dst.layout(), a.layout(), b.layout()]);
    let (size, wide) = (size_of::<T>(), size_of::<U>());
    walk.parallel(2 * size + wide, |run| {
        let [step, step_a, step_b] = run.strides;
        // SAFETY: the walk stays inside of all layouts, and the sources lie apart from `dst`.
        unsafe {
            let to = dst.origin().offset(run.offsets[0]);
            let (a, b) = (a.origin().offset(run.offsets[1]), b.origin().offset(run.offsets[2]));
            let at = |p: *const u8, k: isize, step: isize| {
                p.offset(k * step).cast::<T>().read_unaligned()
            };
            // The loops that the compiler can turn into vectors have constant steps.
            let (size, wide) = (size as isize, wide as isize);
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
