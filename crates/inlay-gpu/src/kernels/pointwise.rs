//! Pointwise kernels: arithmetic, comparison, selection and casts.

use inlay_core::{Arithmetic, Comparison, DType, Kind, Result, Unary};

use super::expect;
use crate::View;
use crate::numbers::PAIRS;
use crate::shader::{Kernel, Wgsl, wgsl, wgsl_file};

/// The WGSL of `value(i)` as an expression of the numbers `x` and `y`.
macro_rules! of_two {
    ($result:literal) => {
        wgsl!(
            "fn value(i: u32) -> Stored { ",
            "let x = num(load_a(at_a(i))); let y = num(load_b(at_b(i))); return ",
            $result,
            "; }\n"
        )
    };
}

/// The WGSL of `value(i)` as an expression of the old number `x` of the destination, and of `y`.
macro_rules! of_old {
    ($result:literal) => {
        wgsl!(
            "fn value(i: u32) -> Stored { ",
            "let x = num(load_to(at_to(i))); let y = num(load_b(at_b(i))); return ",
            $result,
            "; }\n"
        )
    };
}

/// Writes `to = a (op) b`, or `to (op)= b` without `a`. All have one dtype and shape.
///
/// # Errors
/// The views don't fit, or the device can't compute with the dtype, is lost or refuses the call.
pub fn arithmetic(op: Arithmetic, to: View<'_>, a: Option<View<'_>>, b: View<'_>) -> Result<()> {
    let (name, body, update) = match op {
        Arithmetic::Add => ("add", of_two!("raw(add(x, y))"), of_old!("raw(add(x, y))")),
        Arithmetic::Subtract => ("subtract", of_two!("raw(sub(x, y))"), of_old!("raw(sub(x, y))")),
        Arithmetic::Multiply => ("multiply", of_two!("raw(mul(x, y))"), of_old!("raw(mul(x, y))")),
        Arithmetic::Divide => ("divide", of_two!("raw(div(x, y))"), of_old!("raw(div(x, y))")),
    };
    if let Some(a) = a {
        expect::dtype(name, "a", a, to.dtype)?;
        return of_two(name, body, to, a, b);
    }
    expect::like(name, "b", b, to)?;
    to.buffer.gpu().expect_arithmetic(name, to.dtype)?;
    Kernel::new(name, update, to.buffer).computes_in(to.dtype).read("b", b)?.update(to)
}

/// Runs a body that reads `a` and `b`, which have one dtype and the shape of `to`.
fn of_two(
    name: &'static str,
    body: &'static Wgsl,
    to: View<'_>,
    a: View<'_>,
    b: View<'_>,
) -> Result<()> {
    expect::shape(name, "a", a.layout.shape(), to.layout.shape())?;
    expect::like(name, "b", b, a)?;
    to.buffer.gpu().expect_arithmetic(name, a.dtype)?;
    Kernel::new(name, body, to.buffer).computes_in(a.dtype).read("a", a)?.read("b", b)?.to(to)
}

/// Writes `to = op(a)`.
///
/// # Errors
/// As for [`arithmetic`].
pub fn unary(op: Unary, to: View<'_>, a: View<'_>) -> Result<()> {
    let (name, body) = match op {
        Unary::Negative if matches!(a.dtype, DType::F16 | DType::BF16) => {
            // Flipping the sign bit keeps all other bits of NaN. A conversion to 32 bits would not.
            let body = wgsl!("fn value(i: u32) -> Stored { return load_a(at_a(i)) ^ 0x8000u; }\n");
            expect::like("negative", "a", a, to)?;
            return Kernel::new("negative16", body, to.buffer).read("a", a)?.to(to);
        }
        Unary::Negative => (
            "negative",
            wgsl!("fn value(i: u32) -> Stored { return raw(neg(num(load_a(at_a(i))))); }\n"),
        ),
        Unary::Conjugate => (
            "conjugate",
            wgsl!("fn value(i: u32) -> Stored { return raw(conj(num(load_a(at_a(i))))); }\n"),
        ),
    };
    expect::like(name, "a", a, to)?;
    to.buffer.gpu().expect_arithmetic(name, a.dtype)?;
    Kernel::new(name, body, to.buffer).computes_in(a.dtype).read("a", a)?.to(to)
}

/// Writes `to = a (op) b`, where `to` is bool.
///
/// # Errors
/// As for [`arithmetic`].
pub fn compare(op: Comparison, to: View<'_>, a: View<'_>, b: View<'_>) -> Result<()> {
    let (name, body) = match op {
        Comparison::Equal => ("equal", of_two!("select(0u, 1u, equal(x, y))")),
        Comparison::NotEqual => ("not_equal", of_two!("select(1u, 0u, equal(x, y))")),
        // NaN is the same as NaN.
        Comparison::Same => {
            ("same", of_two!("select(0u, 1u, equal(x, y) || (is_nan(x) && is_nan(y)))"))
        }
        Comparison::Less => ("less", of_two!("select(0u, 1u, less(x, y))")),
        Comparison::LessEqual => ("less_equal", of_two!("select(0u, 1u, less_equal(x, y))")),
        Comparison::Greater => ("greater", of_two!("select(0u, 1u, less(y, x))")),
        Comparison::GreaterEqual => ("greater_equal", of_two!("select(0u, 1u, less_equal(y, x))")),
    };
    expect::dtype(name, "to", to, DType::Bool)?;
    of_two(name, body, to, a, b)
}

/// Writes `to = if condition { a } else { b }`. Without `b`, `to` is changed in place.
///
/// # Errors
/// The views don't fit, or the device is lost or refuses the call.
pub fn blend(to: View<'_>, condition: View<'_>, a: View<'_>, b: Option<View<'_>>) -> Result<()> {
    let op = "where";
    expect::dtype(op, "condition", condition, DType::Bool)?;
    expect::shape(op, "condition", condition.layout.shape(), to.layout.shape())?;
    expect::like(op, "a", a, to)?;
    let body = match b {
        None => wgsl!(
            "fn keep(i: u32) -> bool { return load_c(at_c(i)) != 0u; }\n",
            "fn value(i: u32) -> Stored { return load_a(at_a(i)); }\n"
        ),
        Some(_) => wgsl!(
            "fn value(i: u32) -> Stored { ",
            "if (load_c(at_c(i)) != 0u) { return load_a(at_a(i)); } return load_b(at_b(i)); }\n"
        ),
    };
    let kernel = Kernel::new(op, body, to.buffer).read("c", condition)?.read("a", a)?;
    match b {
        None => kernel.partial().to(to),
        Some(b) => {
            expect::like(op, "b", b, to)?;
            kernel.read("b", b)?.to(to)
        }
    }
}

/// Returns the format of a dtype for [`cast`]: the kind as in `cast.wgsl`, the number of bits, the
/// bits of the mantissa including the hidden bit, and the bias of the exponent. For a complex
/// dtype, it is the format of one part.
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

/// The WGSL that converts the real and imaginary part of a stored element to pairs of words, and
/// the WGSL that converts them back.
fn parts(dtype: DType) -> (&'static Wgsl, &'static Wgsl) {
    let complex = dtype.kind() == Kind::Complex;
    match (dtype.size(), complex) {
        (8, true) => (
            wgsl!(
                "fn re(w: vec2<u32>) -> vec2<u32> { return vec2<u32>(w.x, 0u); }\n",
                "fn im(w: vec2<u32>) -> vec2<u32> { return vec2<u32>(w.y, 0u); }\n"
            ),
            wgsl!(
                "fn join(re: vec2<u32>, im: vec2<u32>) -> Stored { return Stored(re.x, im.x); }\n"
            ),
        ),
        (16, _) => (
            wgsl!(
                "fn re(w: vec4<u32>) -> vec2<u32> { return w.xy; }\n",
                "fn im(w: vec4<u32>) -> vec2<u32> { return w.zw; }\n"
            ),
            wgsl!("fn join(re: vec2<u32>, im: vec2<u32>) -> Stored { return Stored(re, im); }\n"),
        ),
        (8, false) => (
            wgsl!(
                "fn re(w: vec2<u32>) -> vec2<u32> { return w; }\n",
                "fn im(w: vec2<u32>) -> vec2<u32> { return vec2<u32>(0u, 0u); }\n"
            ),
            wgsl!("fn join(re: vec2<u32>, im: vec2<u32>) -> Stored { return re; }\n"),
        ),
        _ => (
            wgsl!(
                "fn re(w: u32) -> vec2<u32> { return vec2<u32>(w, 0u); }\n",
                "fn im(w: u32) -> vec2<u32> { return vec2<u32>(0u, 0u); }\n"
            ),
            wgsl!("fn join(re: vec2<u32>, im: vec2<u32>) -> Stored { return re.x; }\n"),
        ),
    }
}

/// Converts `from` to the dtype of `to`. Only integer arithmetic is used, so every device supports
/// it.
///
/// # Errors
/// The views don't fit, or the device is lost or refuses the call.
pub fn cast(to: View<'_>, from: View<'_>) -> Result<()> {
    expect::shape("cast", "from", from.layout.shape(), to.layout.shape())?;
    let mut kernel = Kernel::new("cast", wgsl_file!("cast.wgsl"), to.buffer)
        .with(PAIRS)
        .with(parts(from.dtype).0)
        .with(parts(to.dtype).1);
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
