//! What describes a tensor on any device: dtypes, dimensions, layouts and errors.
//!
//! Nothing here accesses memory. The devices and the operations are built on these types.
#![forbid(unsafe_code)]

mod blame;
mod cause;
mod dim;
mod dtype;
mod error;
mod integer;
mod layout;
mod meta;
mod slice;
mod tree;
mod version;
mod words;

pub use cause::Cause;
pub use dim::{Dim, Symbol};
pub use dtype::{DType, Kind};
pub use error::{Error, ErrorKind, Result, ShapeText};
pub use integer::Integer;
pub use layout::{Layout, Shape, Strides, collect, resized};
pub use meta::{Dims, Meta, axis_of, broadcast_dims, expect_shape, may_equal};
pub use slice::{IntoEnd, ResolvedSlice, Slice};
pub use tree::{FOLD_BLOCK, FOLD_FEW_LANES, FOLD_LANES};
pub use version::Versions;
pub use words::{Arithmetic, Combine, Comparison, Fold, Reduce, Triangle, Unary};
