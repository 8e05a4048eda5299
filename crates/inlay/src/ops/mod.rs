//! The operations, one file each: the declaration, the shape rules, the kernel call, the gradient,
//! and the methods of [`Tensor`](crate::Tensor).

mod broadcast;
mod names;
mod selected_scatter;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use inlay_core::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::declare::Operation;
use crate::op::AnyOp;

pub(crate) use block::{Block, Pad};
pub(crate) use index_select::IndexSelect;
pub(crate) use region::WriteRegion;
pub(crate) use selected_scatter::SelectedScatter;
pub(crate) use stretch::{BACKWARD, GRAD};

pub use diagonal_scatter::{Diagonal, DiagonalScatter};
pub use index::Item;
pub use put_along_axis::PutAlongAxis;
pub use scatter::Scatter;
pub use select_scatter::SelectScatter;
pub use slice_scatter::{SliceScatter, Slices};

/// An operation type that program files can hold.
struct Stored {
    /// The name of the type in files.
    tag: &'static str,
    /// Serializes an operation, if it is of this type.
    save: fn(&AnyOp) -> Option<Result<Vec<u8>>>,
    load: fn(&[u8]) -> Result<AnyOp>,
}

/// Lists the files of operations. The braces after each file list the operation types that programs
/// hold, with their names in program files. An operation that is composed of others has none.
///
/// A file that is marked `helper` declares no operation.
macro_rules! registry {
    ($($file:ident $(: $helper:ident)? { $($tag:ident($type:ty)),* $(,)? })*) => {
        $(mod $file;)*

        static DECLARED: &[&[&Operation]] = &[$(registry!(@declared $file $($helper)?)),*];

        static STORED: &[Stored] = &[$($(Stored {
            tag: stringify!($tag),
            save: |op| op.downcast::<$type>().map(to_bytes),
            load: |bytes| from_bytes::<$type>(bytes).map(AnyOp::new),
        },)*)*];
    };
    (@declared $file:ident helper) => {
        &[]
    };
    (@declared $file:ident) => {
        $file::OPERATIONS
    };
}

registry! {
    arithmetic { Arithmetic(arithmetic::Arith) }
    block: helper {
        BlockScatter(WriteRegion<Block>), Block(region::ReadRegion<Block>), Pad(block::Pad)
    }
    cast { Cast(cast::Cast) }
    compare { Compare(compare::Compare) }
    concat { Concat(concat::Concat) }
    copy { Copy(copy::Copy) }
    create {}
    diagonal_scatter {
        DiagonalScatter(WriteRegion<Diagonal>), Diagonal(region::ReadRegion<Diagonal>)
    }
    flat: helper { CheckedIndex(flat::CheckedIndex) }
    gather_nd {}
    index { SetItem(WriteRegion<index::Basic>), GetItem(region::ReadRegion<index::Basic>) }
    index_add {}
    index_copy {}
    index_fill { IndexFill(index_fill::IndexFill) }
    index_put {}
    index_select { IndexSelect(IndexSelect) }
    like {}
    masked_fill { MaskedFill(masked_fill::MaskedFill) }
    masked_scatter { MaskedScatter(masked_scatter::MaskedScatter) }
    masked_select { MaskedSelect(masked_select::MaskedSelect) }
    products { Products(products::Products) }
    put_along_axis { PutAlongAxis(PutAlongAxis) }
    reduce { Reduction(reduce::Reduction) }
    region: helper {}
    scan { Neighbours(scan::Neighbours), Scan(scan::Scan) }
    scatter { Scatter(Scatter) }
    scatter_grad { Winners(scatter_grad::Winners) }
    scatter_nd {}
    select_scatter {
        SelectScatter(WriteRegion<SelectScatter>), Select(region::ReadRegion<SelectScatter>)
    }
    shape { Reshape(shape::Reshape), Merge(shape::Merge), Transpose(shape::Transpose) }
    size { Numbers(size::AxisNumbers), Count(size::Count) }
    slice_scatter { SliceScatter(WriteRegion<Slices>), Slice(region::ReadRegion<Slices>) }
    squeeze { Squeeze(squeeze::Squeeze) }
    stretch {
        BroadcastTo(stretch::BroadcastTo), ShrinkTo(stretch::ShrinkTo), Fit(stretch::Fit)
    }
    take_along_axis { TakeAlongAxis(take_along_axis::TakeAlongAxis) }
    to_device {}
    triangle { KeepTriangle(triangle::KeepTriangle) }
    triangle_indices { TriangleIndices(triangle_indices::TriangleIndices) }
    unary { Pointwise(unary::Pointwise), Real(unary::Real), Imag(unary::Imag) }
    where_ { Where(where_::Where) }
}

/// Returns all declared operations, including those that only other operations call.
fn all() -> impl Iterator<Item = &'static Operation> {
    DECLARED.iter().flat_map(|declared| declared.iter().copied())
}

/// Returns the operations sorted by name: what each is called, what it takes and returns, and what
/// it does.
///
/// ```
/// let writes = inlay::operations().iter().filter(|op| op.twin.is_some());
/// assert!(writes.map(|op| op.name).any(|name| name == "slice_scatter"));
/// ```
pub fn operations() -> &'static [&'static Operation] {
    static TABLE: LazyLock<Vec<&Operation>> = LazyLock::new(|| {
        let mut table: Vec<_> = all().filter(|operation| operation.body.is_some()).collect();
        table.sort_by_key(|operation| operation.name);
        table
    });
    &TABLE
}

fn failed(op: &'static str, error: &postcard::Error) -> Error {
    Error::File { op, problem: error.to_string() }
}

fn to_bytes<T: Serialize>(op: &T) -> Result<Vec<u8>> {
    postcard::to_allocvec(op).map_err(|error| failed("save", &error))
}

fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let (op, rest) = postcard::take_from_bytes(bytes).map_err(|error| failed("load", &error))?;
    match rest {
        [] => Ok(op),
        _ => Err(Error::File { op: "load", problem: "an operation is too long".into() }),
    }
}

/// Returns what a file holds of an operation: the tag of its type, and its bytes.
pub(crate) fn save(op: &AnyOp) -> Result<(&'static str, Vec<u8>)> {
    let saved = STORED.iter().find_map(|stored| Some((stored.tag, (stored.save)(op)?)));
    match saved {
        Some((tag, bytes)) => Ok((tag, bytes?)),
        None => {
            let problem = format!("{} is not among the operations of files", op.name());
            Err(Error::File { op: "save", problem })
        }
    }
}

/// Restores the operation from the tag and bytes that [`save`] returned.
pub(crate) fn load(tag: &str, bytes: &[u8]) -> Result<AnyOp> {
    match STORED.iter().find(|stored| stored.tag == tag) {
        Some(stored) => (stored.load)(bytes),
        None => Err(Error::File { op: "load", problem: format!("{tag:?} is no operation") }),
    }
}
