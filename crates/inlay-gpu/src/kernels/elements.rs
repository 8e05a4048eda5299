//! Single elements at the positions of an index of the tensor's own rank.

use inlay_core::{Combine, Layout, Result};

use super::Positions;
use super::positions::{contiguous, winners, words_view};
use super::rows::{Keys, scatter};
use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::shader::Kernel;

/// `to[.., j, ..] = from[.., index[.., j, ..], ..]` along `axis`; the index stretches to the shape of
/// `to`.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn gather_elements(to: View<'_>, from: View<'_>, axis: usize, index: &Positions) -> Result<()> {
    gather(to, from, axis, index, &index.stretched(to.layout.shape())?)
}

/// The same with the position of each element where `entries` says.
pub(super) fn gather(
    to: View<'_>,
    from: View<'_>,
    axis: usize,
    index: &Positions,
    entries: &Layout,
) -> Result<()> {
    if to.layout.numel() == 0 {
        return Ok(());
    }
    let mut strides: Vec<isize> = from.layout.strides().to_vec();
    let step = std::mem::take(&mut strides[axis]) / from.size() as isize;
    // Where each element's lane begins.
    let lanes = Layout::over(to.layout.shape(), &strides, from.layout.offset());
    Kernel::new("gather", include_str!("gather.wgsl"), to.buffer)
        .params(&[step as i32 as u32])
        .read("p", words_view(index.words(), entries))?
        .read("a", View { layout: &lanes, ..from })?
        .to(to)
}

/// The number, in row-major order of `shape`, of the element that each entry names along `axis`.
fn flat_keys(index: &Positions, entries: &[usize], shape: &[usize], axis: usize) -> Result<Buffer> {
    let whole = Layout::contiguous("index", shape, 4)?;
    let mut strides: Vec<isize> = whole.strides().to_vec();
    let step = std::mem::take(&mut strides[axis]) / 4;
    let lanes = Layout::over(entries, &strides, 0);
    let layout = index.stretched(entries)?;
    let total = lanes.numel();
    let (keys, flat) = (Buffer::on(index.words().gpu(), 4 * total)?, contiguous(total)?);
    Kernel::new("flat_keys", include_str!("flat_keys.wgsl"), &keys)
        .params(&[count(step as usize)?])
        .read("p", words_view(index.words(), &layout))?
        .block("lanes", words_view(&keys, &lanes))?
        .to(words_view(&keys, &flat))?;
    Ok(keys)
}

/// `to = base; to[.., index[.., j, ..], ..] (combine)= values[.., j, ..]` along `axis`, for j in
/// order; the index stretches to the shape of `values`.
///
/// # Errors
/// A device that can't compute with the dtype, is gone, or refuses.
pub fn scatter_elements(
    op: &'static str,
    to: View<'_>,
    base: Option<View<'_>>,
    axis: usize,
    index: &Positions,
    values: View<'_>,
    combine: Combine,
) -> Result<()> {
    let places = to.layout.numel();
    count(places)?;
    let words = flat_keys(index, values.layout.shape(), to.layout.shape(), axis)?;
    let keys = Keys { words: &words, count: count(values.layout.numel())?, places };
    scatter(op, to, base, &keys, values, combine)
}

/// Whether each entry is the last one along `axis` that names its one of `places`, as bool to `to`,
/// which has the shape of the index.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn winning_elements(to: View<'_>, index: &Positions, axis: usize, places: usize) -> Result<()> {
    let mut shape = index.shape().to_vec();
    shape[axis] = places;
    let total = count(shape.iter().product())?;
    let keys = flat_keys(index, index.shape(), &shape, axis)?;
    let table = winners(&keys, index.count()?, total)?;
    let body = "fn value(i: u32) -> Word { \
                return select(0u, 1u, load_table(load_keys(i)) == i + 1u); }\n";
    Kernel::new("winning", body, to.buffer).words("keys", &keys).words("table", &table).to(to)
}
