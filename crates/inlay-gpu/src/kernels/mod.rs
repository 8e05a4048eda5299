//! The list of kernels. Each records what is to be done; see [`crate::scope`].
//!
//! Inputs are what the operations' inference has accepted. Where a `base` is given, `to` is fresh and
//! takes from there what the kernel does not write.

mod copy;
mod elements;
mod fold;
mod mask;
mod pointwise;
mod positions;
mod products;
mod rows;
mod scan;
mod sort;
mod sums;
mod triangle;

pub use copy::copy;
pub use elements::{gather_elements, scatter_elements, winning_elements};
pub use fold::fold;
pub use mask::{Bits, compress, expand};
pub use pointwise::{arithmetic, cast, compare, select, unary};
pub use positions::{Positions, neighbours};
pub use products::{products_of_all, products_of_others};
pub use rows::{gather_rows, scatter_rows};
pub use scan::scan_rows;
pub use triangle::{keep_triangle, triangle_indices};

/// Says what is wrong, given the first position that is.
pub type Explain = crate::batch::Explain;
