//! The CPU: its memory, its threads, and the kernels that move bytes on layouts.
//!
//! Of the CPU crates, this is the one with `unsafe`. Its public interface is safe. Memory is reached
//! through the locks of buffers. A view's bounds are checked when it is made. A [`Dst`] is exclusive, as
//! a `&mut` is. Each kernel checks once per call that its views fit together, and panics if not; the
//! checks take time in proportion to the rank, not to the number of elements.

#[doc(hidden)]
pub mod arch;
mod halves;
pub mod kernels;
pub mod memory;
mod number;
mod once;
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
