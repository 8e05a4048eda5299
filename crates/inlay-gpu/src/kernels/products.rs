//! The gradient of a product's factors: that of the product times all other factors.
//!
//! As on the CPU, nothing is divided: products of the factors before and of those after each one, in
//! twice the precision.

use inlay_core::{DType, Result};

use super::rows::axis_first;
use super::{Positions, copy, sort};
use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::numbers::wide_size;
use crate::shader::{Access, Kernel};

/// Factors of a place that a thread takes at a time: a device in software ends loops after 65,535
/// steps and says nothing.
const SPAN: u32 = 1 << 15;

/// The dtype of twice the precision, if there is one.
fn precise(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        DType::F32 => DType::F64,
        DType::C64 => DType::C128,
        other => other,
    }
}

impl<'a> Kernel<'a> {
    /// Lets the body compute in twice the precision of `dtype`: `up` and `down`.
    fn precise(self, dtype: DType) -> Self {
        match dtype {
            DType::F32 => self.numbers(DType::F64).with(
                "up",
                "fn up(w: u32) -> N { return f64(bitcast<f32>(w)); }\n\
                 fn down(n: N) -> u32 { return bitcast<u32>(f32(n)); }\n",
            ),
            DType::C64 => self.numbers(DType::C128).with(
                "up",
                "fn up(w: vec2<u32>) -> N { \
                 return N(f64(bitcast<f32>(w.x)), f64(bitcast<f32>(w.y))); }\n\
                 fn down(n: N) -> vec2<u32> { \
                 return vec2<u32>(bitcast<u32>(f32(n.x)), bitcast<u32>(f32(n.y))); }\n",
            ),
            _ => self.numbers(dtype).with(
                "same",
                "fn up(w: Word) -> N { return num(w); }\nfn down(n: N) -> Word { return raw(n); }\n",
            ),
        }
    }
}

/// `to[i]` is the gradient `g` of the place of row `i`, times the conjugate of all factors of the
/// place but `x[i]`: the other rows of `x`, and `first`.
///
/// # Errors
/// A device that can't compute with the dtype, is gone, or refuses.
pub fn products_of_others(
    to: View<'_>,
    g: View<'_>,
    x: View<'_>,
    first: Option<View<'_>>,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    let gpu = to.buffer.gpu();
    gpu.expect_arithmetic("products", precise(to.dtype))?;
    let entries = index.count()?;
    let elements = count(to.layout.numel())?;
    if elements == 0 {
        return Ok(());
    }
    let width = elements / entries;
    let sorted = sort::sort(index.words(), entries, g.layout.shape()[axis])?;
    let wide = wide_size(precise(to.dtype));
    let room = || Buffer::on(gpu, elements as usize * wide);
    let (kept, carry) = (room()?, room()?);
    let own = first.unwrap_or(g);
    let [to_rows, g_rows, x_rows, own_rows] =
        [to, g, x, own].map(|view| axis_first(view.layout, axis));
    let parts = 0..entries.div_ceil(SPAN);
    for (back, part) in parts.clone().map(|part| (0, part)).chain(parts.map(|part| (1, part))) {
        let mut kernel = Kernel::new("others", include_str!("products_of_others.wgsl"), to.buffer)
            .precise(to.dtype)
            .with("", include_str!("segments.wgsl"))
            .constant("OWN", first.is_some().into())
            .constant("BACK", back)
            .constant("SPAN", SPAN)
            .params(&[width, entries, part])
            .words("keys", &sorted.keys)
            .words("order", &sorted.order)
            .read("g", View { layout: &g_rows, ..g })?
            .read("x", View { layout: &x_rows, ..x })?;
        kernel = match first {
            Some(own) => kernel.read("own", View { layout: &own_rows, ..own })?,
            None => kernel.with(
                "alone",
                "fn load_own(i: u32) -> Word { return Word(); }\n\
                 fn at_own(i: u32) -> u32 { return i; }\n",
            ),
        };
        kernel
            .operand("kept", &kept, wide, Access::Write)
            .operand("carry", &carry, wide, Access::Write)
            .operand("to", to.buffer, to.size(), Access::Put)
            .block("to", View { layout: &to_rows, ..to })?
            .run(elements)?;
    }
    Ok(())
}

/// `to` is the gradient `g`, times the conjugate of all rows of `x` that name its place.
///
/// # Errors
/// As for [`products_of_others`].
pub fn products_of_all(
    to: View<'_>,
    g: View<'_>,
    x: View<'_>,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    to.buffer.gpu().expect_arithmetic("products", precise(to.dtype))?;
    copy(to, g)?;
    let (entries, elements) = (index.count()?, count(x.layout.numel())?);
    if elements == 0 {
        return Ok(());
    }
    let sorted = sort::sort(index.words(), entries, g.layout.shape()[axis])?;
    let [to_rows, x_rows] = [to, x].map(|view| axis_first(view.layout, axis));
    let gpu = to.buffer.gpu();
    let wide = wide_size(precise(to.dtype));
    let carry = Buffer::on(gpu, elements as usize * wide)?;
    for part in 0..entries.div_ceil(SPAN) {
        Kernel::new("all", include_str!("products_of_all.wgsl"), to.buffer)
            .precise(to.dtype)
            .with("", include_str!("segments.wgsl"))
            .constant("SPAN", SPAN)
            .params(&[elements / entries, entries, part])
            .words("keys", &sorted.keys)
            .words("order", &sorted.order)
            .read("x", View { layout: &x_rows, ..x })?
            .operand("carry", &carry, wide, Access::Write)
            .operand("to", to.buffer, to.size(), Access::Put)
            .block("to", View { layout: &to_rows, ..to })?
            .run(elements)?;
    }
    Ok(())
}
