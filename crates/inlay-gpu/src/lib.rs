//! How the kernels run on GPUs: one device a process, buffers that are recycled, shaders put
//! together from parts, and calls that are recorded and submitted together.
//!
//! The seam is the same as that of the CPU's room: views in, kernels by name. A call is recorded
//! inside of a [`scope`]; what it checks on the device is read once, at the end of the scope, and
//! everything that is recorded after a failed check writes nothing.
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

use inlay_core::{DType, Layout};

/// Elements of one dtype that lie in a buffer as a layout says.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Where.
    pub buffer: &'a Buffer,
    /// How.
    pub layout: &'a Layout,
    /// Of what.
    pub dtype: DType,
}

impl View<'_> {
    /// Bytes of one element.
    fn size(&self) -> usize {
        self.dtype.size()
    }
}
