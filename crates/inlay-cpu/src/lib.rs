//! The CPU: its memory, its threads, and the kernels that move bytes on layouts.
//!
//! This is the one CPU room with `unsafe`. Its public face is safe: memory is reached through
//! locked buffers, and a view's bounds are proved when it is made.

#[doc(hidden)]
pub mod arch;
mod halves;
pub mod kernels;
pub mod memory;
mod number;
pub mod rounding;
mod stream;
pub mod threads;
#[doc(hidden)]
pub mod tuning;
mod view;
mod walk;

pub use memory::Buffer;
pub use number::{Bool8, Element};
pub use view::{Dst, Src};
