//! The list of kernels. Each function records its work; see [`crate::scope`].
//!
//! Every function checks the shapes, dtypes, axes and bounds that it relies on. Where a `base` is
//! given, `to` is fresh and takes from the base what the kernel does not write.

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

/// Makes the error of a failed check, given the first position that is wrong.
pub type Explain = crate::batch::Explain;

/// The most steps of a loop in a kernel. A software device (lavapipe) ends a loop silently after
/// 65,535 steps, so longer work is split over several launches.
const MAX_STEPS: u32 = 1 << 15;
