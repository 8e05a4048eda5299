//! The GPU kernels. Each function records commands; see [`crate::scope`].
//!
//! Every function checks the shapes, dtypes, axes and bounds that it relies on. If a `base` is
//! given, `to` is a new tensor, and the elements that the kernel does not compute are copied from
//! the base.

mod accumulator;
mod copy;
mod elements;
mod expect;
mod fold;
mod mask;
mod pointwise;
mod positions;
mod products;
mod rows;
mod scan;
mod sort;
mod sums;
#[cfg(test)]
mod tests;
mod triangle;

pub use copy::copy;
pub use elements::{gather_elements, scatter_elements, winning_elements};
pub use fold::fold;
pub use mask::{Bits, compress, expand};
pub use pointwise::{arithmetic, blend, cast, compare, unary};
pub use positions::{Positions, neighbours};
pub use products::{products_of_all, products_of_others};
pub use rows::{gather_rows, scatter_rows};
pub use scan::scan_rows;
pub use triangle::{keep_triangle, triangle_indices};

/// Makes the error of a failed check from the first wrong position.
pub type Explain = crate::batch::Explain;

/// The largest number of loop steps in a kernel. A software device (lavapipe) silently ends a loop
/// after 65,535 steps, so longer loops are split over several launches.
const MAX_STEPS: u32 = 1 << 15;
