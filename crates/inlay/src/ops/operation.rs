//! Every operation as a value: what programs hold, compare, and save.

use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::{Serialize, Serializer};

use super::arithmetic::Arith;
use super::block::Block;
use super::cast::Cast;
use super::compare::Compare;
use super::concat::Concat;
use super::copy::Copy;
use super::diagonal_scatter::DiagonalScatter;
use super::index::Basic;
use super::index_fill::IndexFill;
use super::index_select::IndexSelect;
use super::masked_fill::MaskedFill;
use super::masked_scatter::MaskedScatter;
use super::masked_select::MaskedSelect;
use super::nd::CheckedIndex;
use super::products::Products;
use super::put_along_axis::PutAlongAxis;
use super::reduce::Reduction;
use super::region::{Read, Write};
use super::scan::{Neighbours, Scan};
use super::scatter::Scatter;
use super::scatter_grad::Winners;
use super::select_scatter::SelectScatter;
use super::selected_scatter::SelectedScatter;
use super::shape::{Merge, Reshape, Transpose};
use super::size::{Count, Numbers};
use super::slice_scatter::SliceScatter;
use super::stretch::{BroadcastTo, Fit, ShrinkTo};
use super::take_along_axis::TakeAlongAxis;
use super::triangle::KeepTriangle;
use super::triangle_indices::TriangleIndices;
use super::unary::{Pointwise, Real};
use super::where_::Where;
use crate::funnel::Op;

macro_rules! operations {
    ($($(#[$attribute:meta])* $name:ident($op:ty) $arity:literal,)*) => {
        /// One of the operations. Their order is that of the file format: new ones go to the end of
        /// what files hold.
        #[derive(Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) enum Operation {
            $($(#[$attribute])* $name($op),)*
        }

        impl Deref for Operation {
            type Target = dyn Op;

            fn deref(&self) -> &(dyn Op + 'static) {
                match self {
                    $(Operation::$name(op) => op,)*
                }
            }
        }

        impl Operation {
            /// It alone, for the tape.
            pub(crate) fn boxed(self) -> Box<dyn Op> {
                match self {
                    $(Operation::$name(op) => Box::new(op),)*
                }
            }

            /// How many inputs it takes; `None` for any number.
            pub(crate) fn arity(&self) -> Option<usize> {
                let arity = match self {
                    $(Operation::$name(_) => $arity,)*
                };
                (arity != ANY).then_some(arity)
            }
        }

        $(impl From<$op> for Operation {
            fn from(op: $op) -> Self {
                Operation::$name(op)
            }
        })*
    };
}

const ANY: usize = 255;

operations! {
    Scatter(Scatter) 3,
    SliceScatter(Write<SliceScatter>) 2,
    DiagonalScatter(Write<DiagonalScatter>) 2,
    SelectScatter(Write<SelectScatter>) 2,
    SetItem(Write<Basic>) 2,
    BlockScatter(Write<Block>) 2,
    MaskedScatter(MaskedScatter) 3,
    MaskedFill(MaskedFill) 3,
    IndexFill(IndexFill) 3,
    PutAlongAxis(PutAlongAxis) 3,
    Slice(Read<SliceScatter>) 1,
    Diagonal(Read<DiagonalScatter>) 1,
    Select(Read<SelectScatter>) 1,
    GetItem(Read<Basic>) 1,
    Block(Read<Block>) 1,
    MaskedSelect(MaskedSelect) 2,
    IndexSelect(IndexSelect) 2,
    TakeAlongAxis(TakeAlongAxis) 2,
    TriangleIndices(TriangleIndices) 0,
    KeepTriangle(KeepTriangle) 1,
    Arithmetic(Arith) 2,
    Compare(Compare) 2,
    Pointwise(Pointwise) 1,
    Real(Real) 1,
    Where(Where) 3,
    Cast(Cast) 1,
    Copy(Copy) 1,
    Reduction(Reduction) 1,
    Concat(Concat) 255,
    Reshape(Reshape) 1,
    Merge(Merge) 1,
    Transpose(Transpose) 1,
    BroadcastTo(BroadcastTo) 1,
    ShrinkTo(ShrinkTo) 1,
    Numbers(Numbers) 0,
    Count(Count) 0,
    CheckedIndex(CheckedIndex) 1,
    Neighbours(Neighbours) 1,
    Scan(Scan) 3,
    Winners(Winners) 2,
    Products(Products) 4,
    Fit(Fit) 1,
    // Only plans have it, and they are not saved. It stays the last one, since files don't count it.
    #[serde(skip)]
    SelectedScatter(SelectedScatter) 255,
}

/// The name under which a user called an operation that goes by several, or that of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Name(pub(crate) &'static str);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Name {
    /// Those that are in use; files hold no others.
    const ALL: [&str; 22] = [
        "scatter",
        "updates",
        "value",
        "values",
        "index_add",
        "index_put",
        "scatter_nd",
        "scatter_nd_add",
        "setitem",
        "getitem",
        "index_select",
        "put_along_axis",
        "take_along_axis",
        "index_fill",
        "concat",
        "stack",
        "broadcast_to",
        "x",
        "mask",
        "grad",
        "backward",
        "output",
    ];
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = Name::ALL.into_iter().find(|name| *name == text);
        found.map(Name).ok_or_else(|| D::Error::custom("an unknown name"))
    }
}
