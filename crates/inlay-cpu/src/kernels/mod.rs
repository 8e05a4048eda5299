//! The kernels: functions on views that know nothing about operations.
//!
//! A kernel allocates its memory and checks its arguments before its first write. Its result
//! depends neither on the number of threads nor on the strides.
//!
//! Every public function is safe to call with any views. It checks that shapes, dtypes and
//! positions fit together and that no source overlaps the destination, and panics otherwise. The
//! checks take time proportional to the rank; only `scan_rows` also checks every entry of its
//! chain.

mod boxes;
mod cast;
mod copy;
mod elements;
mod few;
mod fold;
mod groups;
mod listing;
pub(crate) mod mask;
mod numbers;
mod overlay;
mod partition;
mod pointwise;
mod positions;
mod ranges;
mod reducer;
mod rows;
mod scan;
#[cfg(test)]
mod tests;
mod tiles;
mod triangle;
mod turn;
mod values;

pub use cast::cast;
pub use copy::copy;
pub use elements::{gather_elements, scatter_elements, winning_elements};
pub use fold::fold;
pub use mask::{Bits, Comb, blend, compress, expand, interleave};
pub use overlay::overlay;
pub use pointwise::{arithmetic, compare, unary};
pub use positions::Positions;
pub use rows::{
    Index, gather_rows, may_select, products_of_all, products_of_others, scatter_rows,
    scatter_selected_rows,
};
pub use scan::{neighbours, scan_rows};
pub use triangle::{keep_triangle, triangle_indices, triangle_largest, triangle_len};
pub use values::{load, load_bytes, store, store_bytes};
