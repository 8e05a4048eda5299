//! The memory of an array on any device.

use inlay_core::{DType, Layout, Result, Versions};
use inlay_cpu::memory::Borrow;

use crate::device::Device;
use crate::guard::is_guarded;

/// A handle to bytes on a device. Clones share the bytes.
#[derive(Clone, Debug)]
pub(crate) enum Buffer {
    Cpu(inlay_cpu::Buffer),
    #[cfg(feature = "gpu")]
    Gpu(inlay_gpu::Buffer),
}

/// Calls a method of the buffer of either device.
macro_rules! either {
    ($this:expr, $buffer:ident => $answer:expr) => {
        match $this {
            Buffer::Cpu($buffer) => $answer,
            #[cfg(feature = "gpu")]
            Buffer::Gpu($buffer) => $answer,
        }
    };
}

impl Buffer {
    /// Allocates `len` bytes with unspecified values.
    #[inline]
    pub(crate) fn new(device: Device, len: usize) -> Result<Self> {
        match device {
            Device::Cpu => inlay_cpu::Buffer::new(len).map(Buffer::Cpu),
            #[cfg(feature = "gpu")]
            Device::Gpu => inlay_gpu::Buffer::new(len).map(Buffer::Gpu),
            #[cfg(not(feature = "gpu"))]
            Device::Gpu => Err(crate::device::not_built()),
        }
    }

    /// Returns the empty buffer that all symbolic tensors share.
    pub(crate) fn nothing() -> Self {
        Buffer::Cpu(inlay_cpu::Buffer::nothing())
    }

    #[inline]
    pub(crate) fn device(&self) -> Device {
        match self {
            Buffer::Cpu(_) => Device::Cpu,
            #[cfg(feature = "gpu")]
            Buffer::Gpu(_) => Device::Gpu,
        }
    }

    /// The CPU buffer. Panics for a GPU buffer; CPU kernels are called only for CPU buffers.
    #[inline]
    pub(crate) fn cpu(&self) -> &inlay_cpu::Buffer {
        match self {
            Buffer::Cpu(buffer) => buffer,
            #[cfg(feature = "gpu")]
            Buffer::Gpu(_) => unreachable!("all arrays of a call are on one device"),
        }
    }

    /// The GPU buffer. Panics for a CPU buffer; GPU kernels are called only for GPU buffers.
    #[cfg(feature = "gpu")]
    pub(crate) fn gpu(&self) -> &inlay_gpu::Buffer {
        match self {
            Buffer::Gpu(buffer) => buffer,
            Buffer::Cpu(_) => unreachable!("all arrays of a call are on one device"),
        }
    }

    /// The number of bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        either!(self, buffer => buffer.len())
    }

    #[inline]
    fn versions(&self) -> &Versions {
        either!(self, buffer => buffer.versions())
    }

    /// The number of writes in place so far.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.versions().current()
    }

    /// Counts a write in place. `recorded` says whether it was recorded for a gradient.
    #[inline]
    pub(crate) fn count_write(&self, recorded: bool) {
        self.versions().count_write(recorded);
    }

    /// The version of the last write that was recorded for a gradient, or 0.
    #[inline]
    pub(crate) fn recorded_version(&self) -> u64 {
        self.versions().recorded()
    }

    /// A number that is unique among the buffers that exist.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        either!(self, buffer => buffer.id())
    }

    /// Whether both are handles to the same buffer.
    #[inline]
    pub(crate) fn same_as(&self, other: &Buffer) -> bool {
        self.id() == other.id()
    }

    /// Whether this is the only handle.
    #[inline]
    pub(crate) fn is_sole(&self) -> bool {
        either!(self, buffer => buffer.is_sole())
    }

    /// Whether the bytes may be written on this thread. A guard of them notes the
    /// question.
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        let writable = match self {
            Buffer::Cpu(buffer) => buffer.is_writable(),
            #[cfg(feature = "gpu")]
            Buffer::Gpu(_) => true,
        };
        writable && !is_guarded(self)
    }

    /// Whether the bytes belong to another library.
    pub(crate) fn is_foreign(&self) -> bool {
        match self {
            Buffer::Cpu(buffer) => buffer.is_foreign(),
            #[cfg(feature = "gpu")]
            Buffer::Gpu(_) => false,
        }
    }

    /// Fails if this thread must not wait until the bytes may be written, because it has borrowed
    /// a tensor.
    #[inline]
    pub(crate) fn expect_free(&self, op: &'static str, arg: &'static str) -> Result<()> {
        match self {
            Buffer::Cpu(buffer) => buffer.expect_free(op, arg),
            #[cfg(feature = "gpu")]
            Buffer::Gpu(_) => Ok(()),
        }
    }

    /// Borrows elements where they are, if they can be a slice.
    pub(crate) fn borrow(&self, layout: &Layout, dtype: DType) -> Option<Borrow<'_>> {
        match self {
            Buffer::Cpu(buffer) => buffer.borrow(layout, dtype),
            #[cfg(feature = "gpu")]
            Buffer::Gpu(_) => None,
        }
    }

    /// The address of the first byte; null for a GPU buffer.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        match self {
            Buffer::Cpu(buffer) => buffer.as_ptr(),
            #[cfg(feature = "gpu")]
            Buffer::Gpu(_) => std::ptr::null_mut(),
        }
    }

    /// Whether two views, each a layout and an element size, are in overlapping address ranges. On
    /// a GPU the range is the whole buffer, because a kernel can't read and write one buffer at
    /// once.
    #[inline]
    pub(crate) fn overlaps(
        &self,
        ours: (&Layout, usize),
        other: &Buffer,
        theirs: (&Layout, usize),
    ) -> bool {
        match (self, other) {
            (Buffer::Cpu(buffer), Buffer::Cpu(other)) => buffer.overlaps(ours, other, theirs),
            #[cfg(feature = "gpu")]
            (Buffer::Gpu(buffer), Buffer::Gpu(other)) => buffer.same_as(other),
            #[cfg(feature = "gpu")]
            _ => false,
        }
    }
}
