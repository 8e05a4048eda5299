//! Reads and writes of single elements, at the positions of an index with the rank of the tensor.

use inlay_core::{Combine, DType, Layout, Result, resized};

use super::positions::{contiguous, winners, words_view};
use super::rows::{Keys, scatter};
use super::{Positions, expect};
use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::shader::{Kernel, wgsl, wgsl_file};

/// Writes `to[.., j, ..] = from[.., index[.., j, ..], ..]` along `axis`. The index is broadcast to
/// the shape of `to`.
///
/// # Errors
/// The views don't fit, or the device is lost or refuses the call.
pub fn gather_elements(to: View<'_>, from: View<'_>, axis: usize, index: &Positions) -> Result<()> {
    let op = "gather_elements";
    expect::axis(op, axis, from.layout)?;
    expect::within(op, "to", to.layout, from.layout, axis)?;
    gather(op, to, from, axis, index, &index.broadcast(op, to.layout.shape())?)
}

/// Like [`gather_elements`]. `index_layout` has the shape of `to` and gives the word of `index` for
/// each of its elements.
pub(super) fn gather(
    op: &'static str,
    to: View<'_>,
    from: View<'_>,
    axis: usize,
    index: &Positions,
    index_layout: &Layout,
) -> Result<()> {
    expect::dtype(op, "from", from, to.dtype)?;
    expect::positions(op, index, from.layout.shape()[axis])?;
    from.expect_inside()?;
    // If `from` is empty and `to` is not, the index has no valid position, so its check fails.
    if to.layout.numel() == 0 || from.layout.numel() == 0 {
        return Ok(());
    }
    let mut strides: Vec<isize> = from.layout.strides().to_vec();
    let step = std::mem::take(&mut strides[axis]) / from.size() as isize;
    // The address at which the lane of each element of `to` begins.
    let lanes = Layout::over(to.layout.shape(), &strides, from.layout.offset());
    Kernel::new("gather", wgsl_file!("gather.wgsl"), to.buffer)
        .params(&[step as i32 as u32])
        .read("p", words_view(index.words(), index_layout))?
        .read("a", View { layout: &lanes, ..from })?
        .to(to)
}

/// Returns the row-major number, in `shape`, of the element that each entry names along `axis`. The
/// index is broadcast to the shape `entries`.
fn flat_keys(
    op: &'static str,
    index: &Positions,
    entries: &[usize],
    shape: &[usize],
    axis: usize,
) -> Result<Buffer> {
    expect::positions(op, index, shape[axis])?;
    let whole = Layout::contiguous("index", shape, 4)?;
    let mut strides: Vec<isize> = whole.strides().to_vec();
    let step = std::mem::take(&mut strides[axis]) / 4;
    let lanes = Layout::over(entries, &strides, 0);
    let index_layout = index.broadcast(op, entries)?;
    let total = lanes.numel();
    let (keys, flat) = (Buffer::on(index.words().gpu(), 4 * total)?, contiguous(total)?);
    Kernel::new("flat_keys", wgsl_file!("flat_keys.wgsl"), &keys)
        .params(&[count(step as usize)?])
        .read("p", words_view(index.words(), &index_layout))?
        .layout("lanes", &lanes, 4)?
        .to(words_view(&keys, &flat))?;
    Ok(keys)
}

/// Computes `to = base; to[.., index[.., j, ..], ..] (combine)= values[.., j, ..]` along `axis`, in
/// the order of j. The index is broadcast to the shape of `values`. Without a base, `to` is changed
/// in place.
///
/// # Errors
/// The views don't fit, or the device can't compute with the dtype, is lost or refuses the call.
pub fn scatter_elements(
    op: &'static str,
    to: View<'_>,
    base: Option<View<'_>>,
    axis: usize,
    index: &Positions,
    values: View<'_>,
    combine: Combine,
) -> Result<()> {
    expect::axis(op, axis, to.layout)?;
    expect::within(op, "values", values.layout, to.layout, axis)?;
    let places = to.layout.numel();
    count(places)?;
    let words = flat_keys(op, index, values.layout.shape(), to.layout.shape(), axis)?;
    let keys = Keys { words: &words, count: count(values.layout.numel())?, places };
    scatter(op, to, base, &keys, values, combine)
}

/// Writes whether each entry is the last one along `axis` that names its place. `to` is bool and
/// has the shape of the index. The axis has `places` places.
///
/// # Errors
/// The views don't fit, or the device is lost or refuses the call.
pub fn winning_elements(to: View<'_>, index: &Positions, axis: usize, places: usize) -> Result<()> {
    let op = "winning_elements";
    expect::dtype(op, "to", to, DType::Bool)?;
    expect::shape(op, "to", to.layout.shape(), index.shape())?;
    expect::axis(op, axis, to.layout)?;
    let shape = resized(index.shape(), axis, places);
    let total = count(shape.iter().product())?;
    let keys = flat_keys(op, index, index.shape(), &shape, axis)?;
    let table = winners(&keys, index.count()?, total)?;
    let body = wgsl!(
        "fn value(i: u32) -> Stored { ",
        "return select(0u, 1u, load_table(load_keys(i)) == i + 1u); }\n"
    );
    Kernel::new(op, body, to.buffer).words("keys", &keys).words("table", &table).to(to)
}
