//! Element by element: arithmetic, comparison, selection, casts.

use inlay_core::{Arithmetic, Comparison, DType, Kind, Result, Unary};

use crate::View;
use crate::shader::Kernel;

/// `to = a (op) b`, all of one dtype and shape.
///
/// # Errors
/// A device that can't compute with the dtype, is gone, or refuses.
pub fn arithmetic(op: Arithmetic, to: View<'_>, a: View<'_>, b: View<'_>) -> Result<()> {
    let (name, text) = match op {
        Arithmetic::Add => ("add", "fn apply(a: N, b: N) -> N { return add(a, b); }\n"),
        Arithmetic::Subtract => ("subtract", "fn apply(a: N, b: N) -> N { return sub(a, b); }\n"),
        Arithmetic::Multiply => ("multiply", "fn apply(a: N, b: N) -> N { return mul(a, b); }\n"),
        Arithmetic::Divide => ("divide", "fn apply(a: N, b: N) -> N { return div(a, b); }\n"),
    };
    to.buffer.gpu().expect_arithmetic(name, a.dtype)?;
    let body = "fn value(i: u32) -> Word { \
                return raw(apply(num(load_a(at_a(i))), num(load_b(at_b(i))))); }\n";
    let kernel = Kernel::new("arithmetic", body, to.buffer).numbers(a.dtype).with(name, text);
    kernel.read("a", a)?.read("b", b)?.to(to)
}

/// `to = op(a)`.
///
/// # Errors
/// As for [`arithmetic`].
pub fn unary(op: Unary, to: View<'_>, a: View<'_>) -> Result<()> {
    let (name, text) = match op {
        Unary::Negative => ("negative", "fn apply(a: N) -> N { return neg(a); }\n"),
        Unary::Conjugate => ("conjugate", "fn apply(a: N) -> N { return conj(a); }\n"),
    };
    if matches!(a.dtype, DType::F16 | DType::BF16) && op == Unary::Negative {
        // The sign's bit alone, of NaN too.
        let body = "fn value(i: u32) -> Word { return load_a(at_a(i)) ^ 0x8000u; }\n";
        return Kernel::new("negative16", body, to.buffer).read("a", a)?.to(to);
    }
    to.buffer.gpu().expect_arithmetic(name, a.dtype)?;
    let body = "fn value(i: u32) -> Word { return raw(apply(num(load_a(at_a(i))))); }\n";
    Kernel::new("unary", body, to.buffer).numbers(a.dtype).with(name, text).read("a", a)?.to(to)
}

/// `to = a (op) b`, as bool.
///
/// # Errors
/// As for [`arithmetic`].
pub fn compare(op: Comparison, to: View<'_>, a: View<'_>, b: View<'_>) -> Result<()> {
    let (name, text) = match op {
        Comparison::Equal => ("equal", "fn holds(a: N, b: N) -> bool { return equal(a, b); }\n"),
        Comparison::NotEqual => {
            ("not_equal", "fn holds(a: N, b: N) -> bool { return !equal(a, b); }\n")
        }
        Comparison::Same => ("same", include_str!("same.wgsl")),
        Comparison::Less => ("less", "fn holds(a: N, b: N) -> bool { return less(a, b); }\n"),
        Comparison::LessEqual => {
            ("less_equal", "fn holds(a: N, b: N) -> bool { return less_equal(a, b); }\n")
        }
        Comparison::Greater => ("greater", "fn holds(a: N, b: N) -> bool { return less(b, a); }\n"),
        Comparison::GreaterEqual => {
            ("greater_equal", "fn holds(a: N, b: N) -> bool { return less_equal(b, a); }\n")
        }
    };
    to.buffer.gpu().expect_arithmetic(name, a.dtype)?;
    let body = "fn value(i: u32) -> Word { \
                return select(0u, 1u, holds(num(load_a(at_a(i))), num(load_b(at_b(i))))); }\n";
    let kernel = Kernel::new("compare", body, to.buffer).numbers(a.dtype).with(name, text);
    kernel.read("a", a)?.read("b", b)?.to(to)
}

/// `to = if condition { a } else { b }`; without `b`, `to` keeps what it has.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn select(to: View<'_>, condition: View<'_>, a: View<'_>, b: Option<View<'_>>) -> Result<()> {
    let keep = "fn keep(i: u32) -> bool { return load_c(at_c(i)) != 0u; }\n\
                fn value(i: u32) -> Word { return load_a(at_a(i)); }\n";
    let choose = "fn value(i: u32) -> Word { \
                  if (load_c(at_c(i)) != 0u) { return load_a(at_a(i)); } \
                  return load_b(at_b(i)); }\n";
    let (name, body) = if b.is_some() { ("choose", choose) } else { ("select", keep) };
    let mut kernel = Kernel::new(name, body, to.buffer).read("c", condition)?.read("a", a)?;
    if let Some(b) = b {
        kernel = kernel.read("b", b)?;
    }
    kernel.to(to)
}

/// A dtype as [`cast`] sees it: what its numbers are, their bits, those of the mantissa, with the
/// hidden one, and the bias of the exponent.
fn format(dtype: DType) -> [u32; 4] {
    let bits = 8 * dtype.size() as u32;
    match dtype {
        DType::Bool => [0, bits, bits, 0],
        DType::F16 => [3, 16, 11, 15],
        DType::BF16 => [3, 16, 8, 127],
        DType::F32 | DType::C64 => [3, 32, 24, 127],
        DType::F64 | DType::C128 => [3, 64, 53, 1023],
        _ if dtype.integer_range().is_some_and(|(low, _)| low < 0) => [2, bits, bits, 0],
        _ => [1, bits, bits, 0],
    }
}

/// How the parts of an element become pairs of words, and back.
fn parts(dtype: DType) -> (&'static str, &'static str) {
    let complex = dtype.kind() == Kind::Complex;
    match (dtype.size(), complex) {
        (8, true) => (
            "fn re(w: vec2<u32>) -> vec2<u32> { return vec2<u32>(w.x, 0u); }\n\
             fn im(w: vec2<u32>) -> vec2<u32> { return vec2<u32>(w.y, 0u); }\n",
            "fn join(re: vec2<u32>, im: vec2<u32>) -> Word { return Word(re.x, im.x); }\n",
        ),
        (16, _) => (
            "fn re(w: vec4<u32>) -> vec2<u32> { return w.xy; }\n\
             fn im(w: vec4<u32>) -> vec2<u32> { return w.zw; }\n",
            "fn join(re: vec2<u32>, im: vec2<u32>) -> Word { return Word(re, im); }\n",
        ),
        (8, false) => (
            "fn re(w: vec2<u32>) -> vec2<u32> { return w; }\n\
             fn im(w: vec2<u32>) -> vec2<u32> { return vec2<u32>(0u, 0u); }\n",
            "fn join(re: vec2<u32>, im: vec2<u32>) -> Word { return re; }\n",
        ),
        _ => (
            "fn re(w: u32) -> vec2<u32> { return vec2<u32>(w, 0u); }\n\
             fn im(w: u32) -> vec2<u32> { return vec2<u32>(0u, 0u); }\n",
            "fn join(re: vec2<u32>, im: vec2<u32>) -> Word { return re.x; }\n",
        ),
    }
}

/// `to = from`, in the dtype of `to`. Integers alone are needed for it, so that every device can.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn cast(to: View<'_>, from: View<'_>) -> Result<()> {
    let mut kernel = Kernel::new("cast", include_str!("cast.wgsl"), to.buffer)
        .with("", include_str!("../numbers/pairs.wgsl"))
        .with(from.dtype.name(), parts(from.dtype).0)
        .with(to.dtype.name(), parts(to.dtype).1);
    for (names, dtype) in [
        (["FROM_KIND", "FROM_BITS", "FROM_DIGITS", "FROM_BIAS"], from.dtype),
        (["TO_KIND", "TO_BITS", "TO_DIGITS", "TO_BIAS"], to.dtype),
    ] {
        for (name, value) in names.into_iter().zip(format(dtype)) {
            kernel = kernel.constant(name, value);
        }
    }
    kernel.read("a", from)?.to(to)
}
