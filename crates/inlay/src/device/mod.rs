//! The interface between operations and devices: the list of kernels, as functions of arrays.
//!
//! All arrays of a call are on one device, which the funnel ensures. Each function calls the kernel
//! of that device. A GPU kernel is only recorded, and has run when the scope of the call ends. Its
//! errors about values are reported then.

/// Calls a function of the device that holds the array `$at`.
macro_rules! at {
    ($at:expr, $function:ident($($arg:expr),*)) => {
        match &$at.buffer {
            Buffer::Cpu(_) => cpu::$function($($arg),*),
            #[cfg(feature = "gpu")]
            Buffer::Gpu(_) => gpu::$function($($arg),*),
        }
    };
}

mod choice;
mod cpu;
#[cfg(feature = "gpu")]
mod gpu;
mod kernels;

#[cfg(not(feature = "gpu"))]
pub(crate) use choice::not_built;
pub(crate) use choice::within;
pub use choice::{
    Device, DeviceInfo, current_device, devices, set_device, switch_device, synchronize,
    with_device,
};
pub(crate) use inlay_cpu::kernels::{Comb, triangle_largest, triangle_len};
pub(crate) use kernels::{
    arithmetic, bits, blend, compare, compress, copy, expand, expect_chain, fold, gather_elements,
    gather_rows, keep_triangle, neighbours, positions, products_of_all, products_of_others,
    scan_rows, scatter_elements, scatter_rows, store_positions, to_dtype, triangle_indices, unary,
    winning_elements,
};

use inlay_core::{Combine, Error, Layout, Result};
use inlay_cpu::Element;

use crate::array::Array;
use crate::memory::Buffer;

/// An index, preceded by the names of the operation and of the index argument, for errors.
pub(crate) type NamedIndex<'a> = (&'static str, &'static str, &'a Array);

/// An [`NamedIndex`] of elements, and its layout broadcast to the shape of the elements.
pub(crate) type Elements<'a> = (&'static str, &'static str, &'a Array, &'a Layout);

/// Runs a call on `device`: new arrays are made there, and when this returns the call is done or
/// has failed. A call on the CPU that has inputs makes its arrays on their device, so the device of
/// the thread is not set: that takes a tenth of the time of a tiny call.
#[inline(always)]
pub(crate) fn scoped<R>(
    device: Device,
    inputs: usize,
    work: impl FnOnce() -> Result<R>,
) -> Result<R> {
    if inputs > 0 && device == Device::Cpu {
        return work();
    }
    within(device, || match device {
        #[cfg(feature = "gpu")]
        Device::Gpu => Ok(inlay_gpu::scope(work)?),
        _ => work(),
    })
}

/// Like [`scoped`], for work that consists of many calls and marks the number of each. `locate` is
/// called with the number of the call that failed.
pub(crate) fn marked<R>(
    device: Device,
    locate: impl FnOnce(usize, Error) -> Error,
    work: impl FnOnce(&dyn Fn(usize) -> Result<()>) -> Result<R>,
) -> Result<R> {
    within(device, || match device {
        #[cfg(feature = "gpu")]
        Device::Gpu => inlay_gpu::program(|| work(&inlay_gpu::mark))
            .map_err(|failed| locate(failed.mark, *failed.error)),
        _ => {
            let at = std::cell::Cell::new(0);
            let mark = |mark| {
                at.set(mark);
                Ok(())
            };
            work(&mark).map_err(|error| locate(at.get(), error))
        }
    })
}

// Copies

/// Returns the size in bytes up to which a tensor is copied whole before a part of it is written.
/// Up to this size, that takes less time than leaving the part out of the copy. `few` means that
/// the part is small.
#[inline]
pub(crate) fn copied_whole(to: &Array, few: bool) -> usize {
    match to.buffer.device() {
        Device::Cpu if few => inlay_cpu::tuning::COPIED_WHOLE.get(),
        // Each part costs some 100 ns.
        Device::Cpu => 4 << 10,
        // A dispatch takes as long as a GPU needs to copy this much.
        Device::Gpu => 1 << 20,
    }
}

/// Copies `base` to `to`, if it is given, and then `source` to the `part` of `to`.
#[inline]
pub(crate) fn copy_over(
    to: &Array,
    base: Option<&Array>,
    part: &Layout,
    source: &Array,
) -> Result<()> {
    at!(to, copy_over(to, base, part, source))
}

/// Copies to each part of the fresh `to` from its source. Where parts overlap, the last one wins.
#[inline]
pub(crate) fn overlay(to: &Array, parts: &[(Layout, Array)]) -> Result<()> {
    at!(to, overlay(to, parts))
}

/// Whether the device of `array` has [`interleave`].
#[inline]
pub(crate) fn interleaves(array: &Array) -> bool {
    array.buffer.device() == Device::Cpu
}

/// Whether [`scatter_selected`] can run for an index with `entries` entries on `axis` of `to`.
pub(crate) fn selects(to: &Array, axis: usize, entries: usize, rows: &Array) -> bool {
    let (places, rows) = (to.shape()[axis], rows.shape()[axis]);
    to.buffer.device() == Device::Cpu && inlay_cpu::kernels::may_select(places, entries, rows)
}

/// `to = base; to[index[i]] (combine)= rows[selected[i]]` along `axis`.
pub(crate) fn scatter_selected(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    index: NamedIndex<'_>,
    (rows, selected): (&Array, NamedIndex<'_>),
    combine: Combine,
) -> Result<()> {
    cpu::scatter_selected(to, base, axis, index, (rows, selected), combine)
}

/// `to` is `source` at the teeth of the comb, and `base` between them. All arrays are contiguous.
#[inline]
pub(crate) fn interleave(to: &Array, base: &Array, source: &Array, comb: Comb) -> Result<()> {
    cpu::interleave(to, base, source, comb)
}

/// Returns a fresh contiguous copy.
#[inline]
pub(crate) fn to_contiguous(op: &'static str, array: &Array) -> Result<Array> {
    let fresh = array.new_like(op)?;
    copy(&fresh, array)?;
    Ok(fresh)
}

/// Returns a fresh contiguous copy on `device`.
#[inline]
pub(crate) fn to_device(op: &'static str, array: &Array, device: Device) -> Result<Array> {
    match (array.buffer.device(), device) {
        #[cfg(feature = "gpu")]
        (Device::Cpu, Device::Gpu) => gpu::upload(op, array),
        #[cfg(feature = "gpu")]
        (Device::Gpu, Device::Cpu) => gpu::download(op, array),
        _ => to_contiguous(op, array),
    }
}

// Values in and out

/// Writes `values` to `to`, a fresh contiguous array with the same number of elements.
#[inline]
pub(crate) fn store<T: Element>(to: &Array, values: &[T]) -> Result<()> {
    at!(to, store(to, values))
}

/// Writes the bytes of all elements to `to`, a fresh contiguous array with the same number of
/// bytes.
#[inline]
pub(crate) fn store_bytes(to: &Array, bytes: &[u8]) -> Result<()> {
    at!(to, store_bytes(to, bytes))
}

/// Returns all elements in row-major order.
#[inline]
pub(crate) fn load<T: Element>(from: &Array) -> Result<Vec<T>> {
    at!(from, load(from))
}

/// Returns the bytes of all elements in row-major order.
#[inline]
pub(crate) fn load_bytes(from: &Array) -> Result<Vec<u8>> {
    at!(from, load_bytes(from))
}
