//! The operations, one file each: what it accepts, what it does, and its methods of [`Tensor`].
//!
//! [`Tensor`]: crate::Tensor

mod arithmetic;
mod block;
mod broadcast;
mod cast;
mod compare;
mod concat;
mod copy;
mod create;
mod diagonal_scatter;
mod index;
mod index_fill;
mod index_select;
mod masked_fill;
mod masked_scatter;
mod masked_select;
mod nd;
mod operation;
mod products;
mod put_along_axis;
mod reduce;
mod region;
mod scan;
mod scatter;
mod scatter_grad;
mod select_scatter;
mod selected_scatter;
mod shape;
mod size;
mod slice_scatter;
mod stretch;
mod take_along_axis;
#[cfg(test)]
mod tests;
mod to_device;
mod triangle;
mod triangle_indices;
mod unary;
mod where_;

pub(crate) use operation::Operation;
pub(crate) use selected_scatter::SelectedScatter;

pub use diagonal_scatter::DiagonalScatter;
pub use index::Item;
pub use masked_fill::Fill;
pub use put_along_axis::PutAlongAxis;
pub use scatter::Scatter;
pub use select_scatter::SelectScatter;
pub use slice_scatter::SliceScatter;
