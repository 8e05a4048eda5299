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

mod adapted;
mod choice;
mod cpu;
#[cfg(feature = "gpu")]
mod gpu;
mod kernels;

pub(crate) use adapted::{
    NamedIndex, bits, copy_over, expect_chain, gather_elements, gather_rows, interleave,
    interleaves, neighbours, overlay, positions, scatter_elements, scatter_rows, scatter_selected,
    selects, store_positions, to_dtype, triangle_indices,
};
#[cfg(not(feature = "gpu"))]
pub(crate) use choice::not_built;
pub(crate) use choice::within;
pub use choice::{
    Device, DeviceInfo, current_device, devices, set_device, switch_device, synchronize,
    with_device,
};
pub(crate) use inlay_cpu::kernels::{Comb, triangle_largest, triangle_len};
pub(crate) use kernels::{
    arithmetic, blend, compare, compress, copy, expand, fold, keep_triangle, products_of_all,
    products_of_others, scan_rows, unary, winning_elements,
};

use inlay_core::{Error, Result};
use inlay_cpu::Element;

use crate::array::Array;
use crate::memory::Buffer;

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
        #[cfg(not(feature = "gpu"))]
        (_, Device::Gpu) => Err(not_built()),
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
