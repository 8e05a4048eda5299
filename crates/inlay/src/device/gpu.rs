//! Views of arrays on the GPU, copies between the devices, and the errors of checks that fail on the
//! device.

use inlay_core::{Error, Layout, Result};
use inlay_cpu::Element;
use inlay_gpu::kernels::Explain;
pub(super) use inlay_gpu::kernels::{Bits, Positions};
use inlay_gpu::{View, scope};

use super::{Device, NamedIndex, cpu};
use crate::array::Array;

pub(super) fn view(array: &Array) -> View<'_> {
    View { buffer: array.buffer.gpu(), layout: &array.layout, dtype: array.dtype }
}

/// Returns a view of an array in another layout.
pub(super) fn part<'a>(array: &'a Array, layout: &'a Layout) -> View<'a> {
    View { layout, ..view(array) }
}

// Copies

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

// Indices

/// Returns a function that makes the error for an index that is out of range. To give the same
/// error as the CPU, it copies the index there and checks it again.
fn explain((op, arg, index): NamedIndex<'_>, axis: usize, size: usize) -> Explain {
    let index = index.clone();
    Box::new(move |_| {
        let again = download(op, &index);
        match again.and_then(|index| super::positions(op, arg, &index, axis, size)) {
            Err(error) => error,
            Ok(_) => Error::Device { reason: format!("{op}: {arg} has changed since it was read") },
        }
    })
}

pub(super) fn positions(index: NamedIndex<'_>, axis: usize, size: usize) -> Result<Positions> {
    Positions::read(view(index.2), size, explain(index, axis, size))
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
