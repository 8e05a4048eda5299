//! Calls of the GPU's kernels: makes views of arrays, and the errors of checks that fail on the
//! device.

use inlay_core::{Combine, Error, Layout, Result, Triangle};
use inlay_cpu::Element;
use inlay_gpu::kernels::{self, Explain};
pub(super) use inlay_gpu::kernels::{Bits, Positions};
use inlay_gpu::{View, scope};

use super::{Device, Elements, NamedIndex, cpu};
use crate::array::Array;

pub(super) fn view(array: &Array) -> View<'_> {
    View { buffer: array.buffer.gpu(), layout: &array.layout, dtype: array.dtype }
}

/// Returns a view of an array in another layout.
fn part<'a>(array: &'a Array, layout: &'a Layout) -> View<'a> {
    View { layout, ..view(array) }
}

// Copies

pub(super) fn copy_over(
    to: &Array,
    base: Option<&Array>,
    region: &Layout,
    source: &Array,
) -> Result<()> {
    if let Some(base) = base {
        kernels::copy(view(to), view(base))?;
    }
    kernels::copy(part(to, region), view(source))
}

pub(super) fn overlay(to: &Array, parts: &[(Layout, Array)]) -> Result<()> {
    parts.iter().try_for_each(|(region, from)| kernels::copy(part(to, region), view(from)))
}

/// Returns a contiguous copy on the GPU of an array on the CPU.
pub(super) fn upload(op: &'static str, array: &Array) -> Result<Array> {
    let to = Array::on(Device::Gpu, op, array.dtype, array.shape())?;
    store_bytes(&to, &cpu::load_bytes(array)?)?;
    Ok(to)
}

/// Returns a contiguous copy on the CPU. Submits the batch and waits for it.
pub(super) fn download(op: &'static str, array: &Array) -> Result<Array> {
    let to = Array::on(Device::Cpu, op, array.dtype, array.shape())?;
    cpu::store_bytes(&to, &load_bytes(array)?)?;
    Ok(to)
}

// Rows and elements

/// Returns a function that makes the error for an index that is out of range. To give the same
/// error as the CPU, it copies the index there and checks it again.
fn explain(
    op: &'static str,
    arg: &'static str,
    index: &Array,
    axis: usize,
    size: usize,
) -> Explain {
    let index = index.clone();
    Box::new(move |_| {
        let again = download(op, &index);
        match again.and_then(|index| cpu::positions(op, arg, &index, axis, size)) {
            Err(error) => error,
            Ok(_) => Error::Device { reason: format!("{op}: {arg} has changed since it was read") },
        }
    })
}

pub(super) fn positions(
    op: &'static str,
    arg: &'static str,
    index: &Array,
    axis: usize,
    size: usize,
) -> Result<Positions> {
    Positions::read(view(index), size, explain(op, arg, index, axis, size))
}

pub(super) fn store_positions(to: &Array, index: &Positions) -> Result<()> {
    index.store(view(to))
}

pub(super) fn expect_chain(op: &'static str, from: &Positions, backwards: bool) -> Result<()> {
    from.expect_chain(backwards, Box::new(move |_| super::kernels::broken_chain(op)))
}

pub(super) fn scatter_rows(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index): NamedIndex<'_>,
    updates: &Array,
    combine: Combine,
) -> Result<()> {
    let index = positions(op, arg, index, axis, to.shape()[axis])?;
    kernels::scatter_rows(op, view(to), base.map(view), axis, &index, view(updates), combine)
}

pub(super) fn gather_elements(
    to: &Array,
    from: &Array,
    axis: usize,
    (op, arg, index): NamedIndex<'_>,
    _entries: &Layout,
) -> Result<()> {
    let index = positions(op, arg, index, axis, from.shape()[axis])?;
    kernels::gather_elements(view(to), view(from), axis, &index)
}

pub(super) fn scatter_elements(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index, _entries): Elements<'_>,
    values: &Array,
    combine: Combine,
) -> Result<()> {
    let index = positions(op, arg, index, axis, to.shape()[axis])?;
    kernels::scatter_elements(op, view(to), base.map(view), axis, &index, view(values), combine)
}

// Masks

pub(super) fn bits(mask: &Array) -> Result<Bits> {
    Bits::read(view(mask))
}

// Triangles

pub(super) fn triangle_indices(
    to: &Array,
    triangle: Triangle,
    shape: (usize, usize),
    offset: i64,
) -> Result<()> {
    // The matrix may have more rows or columns than a kernel can count, even if the triangle is
    // small.
    if shape.0.max(shape.1) >= u32::MAX as usize {
        let host = Array::on(Device::Cpu, "triangle_indices", to.dtype, to.shape())?;
        cpu::triangle_indices(&host, triangle, shape, offset)?;
        return store_bytes(to, &cpu::load_bytes(&host)?);
    }
    kernels::triangle_indices(view(to), triangle, shape, offset)
}

// Values in and out

pub(super) fn store<T: Element>(to: &Array, values: &[T]) -> Result<()> {
    let host = Array::on(Device::Cpu, "store", to.dtype, to.shape())?;
    cpu::store(&host, values)?;
    store_bytes(to, &cpu::load_bytes(&host)?)
}

pub(super) fn store_bytes(to: &Array, bytes: &[u8]) -> Result<()> {
    inlay_gpu::store(to.buffer.gpu(), bytes)
}

pub(super) fn load<T: Element>(from: &Array) -> Result<Vec<T>> {
    cpu::load(&download("load", from)?)
}

pub(super) fn load_bytes(from: &Array) -> Result<Vec<u8>> {
    let len = from.layout.numel().saturating_mul(from.dtype.size());
    // A strided array is copied first, and the copy must be recorded in the same scope.
    let bytes = scope(|| {
        if from.is_contiguous() && from.layout.offset() == 0 {
            return inlay_gpu::load(from.buffer.gpu(), len);
        }
        let whole = super::to_contiguous("load", from)?;
        inlay_gpu::load(whole.buffer.gpu(), len)
    });
    Ok(bytes?)
}
