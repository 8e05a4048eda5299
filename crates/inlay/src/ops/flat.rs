//! Reads and writes at the places of an index expression with tensors, as a move of rows: some axes
//! are merged into one, and the tensors are combined into one index on that axis.

use inlay_core::{DType, Dim, Dims, Error, Meta, Reduce, Result};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::index::{Basic, Parts, Plain, around};
use super::index_select::IndexSelect;
use super::names::Caller;
use super::region::{ReadRegion, WriteRegion};
use crate::array::{Array, known};
use crate::declare::Operation;
use crate::funnel::{apply, apply_in_place};
use crate::op::{Inferred, Inputs, Op, Out};
use crate::{Item, Scatter, Tensor, device};

/// Checks the range of an index and converts it to `i64` positions counted from the front.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct CheckedIndex {
    pub(super) name: Caller,
    pub(super) axis: usize,
    pub(super) size: Dim,
    /// The number of the index among several.
    pub(super) number: Option<u8>,
}

impl CheckedIndex {
    /// The name of the index in errors.
    fn arg(&self) -> &'static str {
        self.number.and_then(|number| NUMBERED.get(usize::from(number))).unwrap_or(&"index")
    }
}

/// The names of the first indices of an expression. Further ones are called `index`.
static NUMBERED: [&str; 16] = [
    "indices[0]",
    "indices[1]",
    "indices[2]",
    "indices[3]",
    "indices[4]",
    "indices[5]",
    "indices[6]",
    "indices[7]",
    "indices[8]",
    "indices[9]",
    "indices[10]",
    "indices[11]",
    "indices[12]",
    "indices[13]",
    "indices[14]",
    "indices[15]",
];

impl Op for CheckedIndex {
    type Inputs = Inputs<1>;
    type Found = ();
    const HAS_GRADIENT: bool = false;

    fn operation(&self) -> &'static Operation {
        self.name.0
    }

    fn infer(&self, [index]: &[Meta; 1]) -> Result<Inferred<()>> {
        index.expect_index(self.name(), self.arg())?;
        Inferred::only(Meta { dtype: DType::I64, shape: index.dims() })
    }

    fn run(&self, [index]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        let positions =
            device::positions(self.name(), self.arg(), index, self.axis, known(self.size))?;
        let to = index.beside(self.name(), DType::I64, index.shape())?;
        device::store_positions(&to, &positions)?;
        Ok(to)
    }

    fn sizes(&self) -> Dims {
        smallvec![self.size]
    }

    fn with_sizes(&self, sizes: &[Dim]) -> Option<Self> {
        let &[size] = sizes else { return None };
        Some(CheckedIndex { size, ..self.clone() })
    }
}

/// Returns the positions of `index` on `axis` of `size`, checked and counted from the front.
pub(super) fn checked_index(
    operation: &'static Operation,
    number: Option<usize>,
    index: &Tensor,
    axis: usize,
    size: Dim,
) -> Result<Tensor> {
    let number = number.and_then(|number| u8::try_from(number).ok());
    apply(CheckedIndex { name: Caller(operation), axis, size, number }, &[index])
}

/// The places that an index expression with tensors names.
pub(super) struct Flat {
    parts: Parts,
    /// The positions on the merged axis, 1-D.
    index: Tensor,
}

impl Flat {
    /// Combines the tensors of `items`, of which there is at least one. With `reorder`, the axes of
    /// x may be merged in another order, so that fewer tensors must be copied for that. Then
    /// [`Flat::put`] can't be used.
    pub(super) fn new(
        operation: &'static Operation,
        x: &Tensor,
        items: &[Item],
        reorder: bool,
    ) -> Result<Self> {
        let parts = Parts::new(operation, x, items, reorder)?;
        let index = parts.positions.reshape(&[-1])?;
        Ok(Flat { parts, index })
    }

    /// Returns the part of `x` that the items without tensors select.
    fn view(&self, x: &Tensor) -> Result<Tensor> {
        let basic = &self.parts.basic;
        match basic.0.iter().all(|item| *item == Plain::Slice(inlay_core::Slice::ALL)) {
            true => Ok(x.clone()),
            false => apply(ReadRegion(basic.clone()), &[x]),
        }
    }

    /// Returns the view with its covered axes merged into one.
    fn rows(&self, view: &Tensor) -> Result<Tensor> {
        let moved = match &self.parts.perm {
            Some(perm) => &view.transpose(perm)?,
            None => view,
        };
        match self.parts.merged.len() {
            1 => Ok(moved.clone()),
            axes => moved.merged(self.parts.merged.start, axes),
        }
    }

    /// Returns the shape of the places in `view`.
    pub(super) fn shape_in(&self, view: &Tensor) -> Dims {
        let merged = &self.parts.merged;
        around(&view.dims(), merged.start, merged.len(), &self.parts.positions.dims())
    }

    /// Reads the places.
    pub(super) fn read(&self, operation: &'static Operation, x: &Tensor) -> Result<Tensor> {
        let view = self.view(x)?;
        let select = IndexSelect { name: Caller(operation), axis: self.parts.merged.start as i64 };
        let rows = apply(select, &[&self.rows(&view)?, &self.index])?;
        rows.shaped(&self.shape_in(&view))
    }

    /// Returns a copy of `x` with `value` at the places. The items without tensors are whole axes.
    pub(super) fn put(
        &self,
        operation: &'static Operation,
        x: &Tensor,
        value: &Tensor,
        how: Scatter,
    ) -> Result<Tensor> {
        let updates = self.updates(operation, x, value)?;
        self.rows(x)?.scatter(&self.index, &updates, self.how(operation, how))?.shaped(&x.dims())
    }

    /// Writes `value` to the places in `x`. Writes through a view if merging gives a view and no
    /// gradient is recorded. Otherwise scatters to a copy and assigns that.
    pub(super) fn write(
        &self,
        operation: &'static Operation,
        x: &Tensor,
        value: &Tensor,
        how: Scatter,
    ) -> Result<()> {
        expect_recordable(operation.name, x, value)?;
        let view = self.view(x)?;
        let updates = self.updates(operation, &view, value)?;
        let (rows, how) = (self.rows(&view)?, self.how(operation, how));
        let shared = !x.is_symbolic() && rows.array().buffer.same_as(&x.array().buffer);
        if shared && !x.records_with(value) {
            return rows.scatter_(&self.index, &updates, how).map(drop);
        }
        let written = rows.scatter(&self.index, &updates, how)?;
        let written = match &self.parts.perm {
            None => written.shaped(&view.dims())?,
            Some(perm) => {
                let dims = view.dims();
                let moved: Dims = perm.iter().map(|&axis| dims[axis as usize]).collect();
                let mut back = vec![0; perm.len()];
                for (to, &from) in perm.iter().enumerate() {
                    back[from as usize] = to as i64;
                }
                written.shaped(&moved)?.transpose(&back)?
            }
        };
        // The tape records writes to the tensor itself, not to a view of it.
        let region = WriteRegion(Basic(self.parts.basic.0.clone()));
        apply_in_place(region, &[x, &written]).map(drop)
    }

    fn how(&self, operation: &'static Operation, how: Scatter) -> Scatter {
        how.axis(self.parts.merged.start as i64).called(operation)
    }

    /// Broadcasts `value` to one row for each position.
    fn updates(
        &self,
        operation: &'static Operation,
        view: &Tensor,
        value: &Tensor,
    ) -> Result<Tensor> {
        let value = value.stretched_as(operation, &self.shape_in(view))?;
        value.merged(self.parts.merged.start, self.parts.positions.rank())
    }
}

/// Fails if a write of `value` into `x` can't be recorded. The recorded write is an assignment, whose
/// own error would name that.
fn expect_recordable(op: &'static str, x: &Tensor, value: &Tensor) -> Result<()> {
    let (history, arg) = (x.history(), "x");
    if !x.records_with(value) {
        return Ok(());
    }
    if history.view().is_some() && !x.is_symbolic() {
        return Err(Error::InPlaceView { op, arg });
    }
    match history.is_leaf() && history.is_tracked() {
        true => Err(Error::InPlaceLeaf { op, arg }),
        false => Ok(()),
    }
}

/// Returns the scatter that assigns, or that adds with `accumulate`.
pub(super) fn assign_or_add(accumulate: bool) -> Scatter {
    match accumulate {
        true => Scatter::reduce(Reduce::Sum).include_self(true),
        false => Scatter::overwrite(),
    }
}
