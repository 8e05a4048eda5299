//! The gradient of a product. For one factor, it is the gradient of the product times all other
//! factors.
//!
//! As on the CPU, there is no division. The product of the factors before each factor is multiplied
//! by the product of the factors after it. These products are computed in the next wider float
//! type.

use inlay_core::{DType, Result, resized};

use super::rows::axis_first;
use super::{MAX_STEPS, Positions, copy, expect, sort};
use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::numbers::wide_size;
use crate::shader::{Access, Kernel, wgsl, wgsl_file};

/// Returns the next wider dtype, or the same dtype if there is none.
fn precise(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        DType::F32 => DType::F64,
        DType::C64 => DType::C128,
        other => other,
    }
}

/// Fails unless `x` has a row of factors for each position and the shape of `g` otherwise, and the
/// device can compute with them.
fn expect_factors(g: View<'_>, x: View<'_>, axis: usize, index: &Positions) -> Result<()> {
    let op = "products";
    expect::axis(op, axis, g.layout)?;
    expect::dtype(op, "x", x, g.dtype)?;
    let rows = resized(g.layout.shape(), axis, index.count()? as usize);
    expect::shape(op, "x", x.layout.shape(), &rows)?;
    expect::positions(op, index, g.layout.shape()[axis])?;
    g.buffer.gpu().expect_arithmetic(op, precise(g.dtype))
}

impl<'a> Kernel<'a> {
    /// Adds the operands and WGSL to multiply the factors `x` of each place, for part `part` of
    /// each place. `up` and `down` convert between stored elements and the wider type.
    fn products(
        self,
        sorted: &'a sort::Sorted,
        x: View<'a>,
        carry: &'a Buffer,
        [width, entries, part]: [u32; 3],
    ) -> Result<Self> {
        let (numbers, convert) = match x.dtype {
            DType::F32 => (
                DType::F64,
                wgsl!(
                    "fn up(w: u32) -> N { return f64(bitcast<f32>(w)); }\n",
                    "fn down(n: N) -> u32 { return bitcast<u32>(f32(n)); }\n"
                ),
            ),
            DType::C64 => (
                DType::C128,
                wgsl!(
                    "fn up(w: vec2<u32>) -> N { ",
                    "return N(f64(bitcast<f32>(w.x)), f64(bitcast<f32>(w.y))); }\n",
                    "fn down(n: N) -> vec2<u32> { ",
                    "return vec2<u32>(bitcast<u32>(f32(n.x)), bitcast<u32>(f32(n.y))); }\n"
                ),
            ),
            same => (
                same,
                wgsl!(
                    "fn up(w: Stored) -> N { return num(w); }\n",
                    "fn down(n: N) -> Stored { return raw(n); }\n"
                ),
            ),
        };
        self.computes_in(numbers)
            .with(convert)
            .with(wgsl_file!("segments.wgsl"))
            .with(wgsl_file!("end_from.wgsl"))
            .constant("SPAN", MAX_STEPS)
            .params(&[width, entries, part])
            .words("keys", &sorted.keys)
            .words("order", &sorted.order)
            .operand("carry", carry, wide_size(numbers), Access::Write)
            .read("x", x)
    }
}

/// Writes to `to[i]` the gradient `g` of the place of row `i`, times the conjugate of the product
/// of all other factors of that place: the other rows of `x`, and `initial`.
///
/// # Errors
/// The views don't fit, or the device can't compute with the dtype, is lost or refuses the call.
pub fn products_of_others(
    to: View<'_>,
    g: View<'_>,
    x: View<'_>,
    initial: Option<View<'_>>,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    expect_factors(g, x, axis, index)?;
    expect::like("products", "x", x, to)?;
    let gpu = to.buffer.gpu();
    let entries = index.count()?;
    let elements = count(to.layout.numel())?;
    if elements == 0 {
        return Ok(());
    }
    let width = elements / entries;
    let sorted = sort::sort(index.words(), entries, g.layout.shape()[axis])?;
    let wide = wide_size(precise(to.dtype));
    let room = || Buffer::on(gpu, elements as usize * wide);
    let (before, carry) = (room()?, room()?);
    let [to_rows, g_rows, x_rows] = [to, g, x].map(|view| axis_first(view.layout, axis));
    let initial_rows = initial.map(|initial| axis_first(initial.layout, axis));
    let initial = initial.zip(initial_rows.as_ref()).map(|(view, layout)| View { layout, ..view });
    if let Some(initial) = initial {
        expect::like("products", "initial", initial, View { layout: &g_rows, ..g })?;
    }
    let parts = 0..entries.div_ceil(MAX_STEPS);
    for (back, part) in parts.clone().map(|part| (0, part)).chain(parts.map(|part| (1, part))) {
        let body = wgsl_file!("products_of_others.wgsl");
        let kernel = Kernel::new("products_of_others", body, to.buffer)
            .products(&sorted, View { layout: &x_rows, ..x }, &carry, [width, entries, part])?
            .constant("HAS_INITIAL", initial.is_some().into())
            .constant("BACK", back)
            .operand("before", &before, wide, Access::Write)
            .read("g", View { layout: &g_rows, ..g })?
            .puts(View { layout: &to_rows, ..to })?;
        match initial {
            Some(initial) => kernel.read("initial", initial)?,
            None => kernel.with(wgsl!(
                "fn load_initial(i: u32) -> Stored { return Stored(); }\n",
                "fn at_initial(i: u32) -> u32 { return i; }\n"
            )),
        }
        .run(elements)?;
    }
    Ok(())
}

/// Writes to `to` the gradient `g`, times the conjugate of the product of all rows of `x` that name
/// the place.
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
    expect_factors(g, x, axis, index)?;
    copy(to, g)?;
    let (entries, elements) = (index.count()?, count(x.layout.numel())?);
    if elements == 0 {
        return Ok(());
    }
    let sorted = sort::sort(index.words(), entries, g.layout.shape()[axis])?;
    let [to_rows, x_rows] = [to, x].map(|view| axis_first(view.layout, axis));
    let wide = wide_size(precise(to.dtype));
    let carry = Buffer::on(to.buffer.gpu(), elements as usize * wide)?;
    for part in 0..entries.div_ceil(MAX_STEPS) {
        let shape = [elements / entries, entries, part];
        Kernel::new("products_of_all", wgsl_file!("products_of_all.wgsl"), to.buffer)
            .products(&sorted, View { layout: &x_rows, ..x }, &carry, shape)?
            .puts(View { layout: &to_rows, ..to })?
            .run(elements)?;
    }
    Ok(())
}
