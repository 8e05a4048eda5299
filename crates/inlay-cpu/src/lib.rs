//! The CPU backend: memory, threads, and kernels that work on strided views.
//!
//! The crate uses `unsafe` inside, but its public interface is safe. The bytes of a buffer are
//! accessed only under its lock. A view's bounds are checked when it is made. A [`Dst`] is
//! exclusive, like `&mut`. Each kernel checks once per call that its views fit together, and panics
//! if they don't. These checks take time proportional to the rank, not to the number of elements.

#[doc(hidden)]
pub mod arch;
mod halves;
pub mod kernels;
pub mod memory;
mod number;
mod once;
pub mod rounding;
mod settings;
mod stream;
pub mod threads;
#[doc(hidden)]
pub mod tuning;
mod view;
mod walk;

pub use memory::Buffer;
pub use number::{Bool8, Element};
pub use settings::environment_problems;
pub use view::{Dst, Src};
