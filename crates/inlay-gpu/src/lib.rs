//! The GPU kernels of Inlay: one device per process, a pool of buffers, shaders that are generated
//! from parts, and calls that are recorded and submitted together.
//!
//! Kernels take views, like the CPU kernels. A call is recorded inside of a [`scope`]. Kernels
//! check values on the device, and the host reads the results of these checks once, at the end of
//! the scope. After a failed check, the kernels that were recorded later write nothing.
#![forbid(unsafe_code)]

mod batch;
mod device;
pub mod kernels;
mod layout;
mod memory;
mod numbers;
mod pipeline;
mod shader;

pub use batch::{Failed, mark, program, scope, synchronize};
pub use device::{Adapter, Gpu, adapters, current};
pub use memory::{Buffer, PoolStats, empty_pool, load, pool_stats, store};

use inlay_core::{DType, Error, Layout, Result};

/// Elements of one dtype in a buffer. Kernels return an error for a view that exceeds its buffer.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The buffer that holds the elements.
    pub buffer: &'a Buffer,
    /// The shape, strides and offset of the elements in the buffer.
    pub layout: &'a Layout,
    /// The type of the elements.
    pub dtype: DType,
}

impl View<'_> {
    /// Bytes of one element.
    fn size(&self) -> usize {
        self.dtype.size()
    }

    /// Fails unless all elements are inside of the buffer, at multiples of their size.
    fn expect_inside(&self) -> Result<()> {
        let (size, layout) = (self.size(), self.layout);
        let inside = layout.extent(size).is_some_and(|range| range.end <= self.buffer.len());
        let mut steps = layout.shape().iter().zip(layout.strides());
        let aligned = layout.offset().is_multiple_of(size)
            && steps.all(|(&dim, stride)| dim <= 1 || stride.unsigned_abs().is_multiple_of(size));
        if layout.numel() == 0 || (inside && aligned) {
            return Ok(());
        }
        Err(Error::OutOfBounds { what: "a view", len: self.buffer.len() })
    }

    /// Fails unless the elements are inside of the buffer and don't overlap each other, so that
    /// each can be written by another thread.
    fn expect_destination(&self, op: &'static str) -> Result<()> {
        self.expect_inside()?;
        match self.layout.overlaps_itself(self.size()) {
            true => Err(Error::SelfOverlap { op, arg: "to" }),
            false => Ok(()),
        }
    }
}
