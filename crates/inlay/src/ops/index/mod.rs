//! `x[...]` and `x[...] = v`, with integers, slices, new axes, index tensors and masks.

mod basic;
mod parts;

use inlay_core::{Dim, Dims, Result, Slice};
use smallvec::SmallVec;

use super::flat::Flat;
use super::masked_scatter::MaskedScatter;
use super::region::{ReadRegion, Region, WriteRegion};
use crate::declare::{Operation, declare};
use crate::funnel::{apply, apply_in_place};
use crate::site::within;
use crate::tape::is_grad_enabled;
use crate::{DType, Scatter, Tensor};

pub(crate) use basic::Basic;
pub(super) use basic::Plain;
pub(super) use parts::{Parts, covers};

declare! {
    GETITEM = "getitem"(x: Tensor, index: Index);

    SETITEM = "setitem"(x: Tensor, index: Index, value: Like);
}

/// One part of an index expression.
///
/// ```
/// use inlay::{Item, Tensor};
///
/// let x = Tensor::from([[1, 2], [3, 4]]);
/// let last = x.index(&[Item::Ellipsis, Item::At(-1)])?;
/// assert_eq!(last.to_vec::<i32>()?, [2, 4]);
/// // `Tensor::i` makes items of integers, ranges and lists.
/// assert_eq!(x.i((.., -1))?.to_vec::<i32>()?, [2, 4]);
/// # Ok::<(), inlay::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Item {
    /// One position of an axis. The axis is dropped.
    At(i64),
    /// A slice of an axis.
    Slice(Slice),
    /// As many whole axes as the other items leave.
    Ellipsis,
    /// A new axis of size 1.
    NewAxis,
    /// Positions on an axis as an integer tensor, or a bool mask over as many axes as it has
    /// itself. Several tensors broadcast together, a mask as the list of its true places.
    Tensor(Tensor),
}

impl Item {
    /// Returns the item without a tensor, or `None` for a tensor.
    fn plain(&self) -> Option<Plain> {
        Some(match self {
            Item::At(index) => Plain::At(*index),
            Item::Slice(slice) => Plain::Slice(*slice),
            Item::Ellipsis => Plain::Ellipsis,
            Item::NewAxis => Plain::NewAxis,
            Item::Tensor(_) => return None,
        })
    }
}

/// Returns the expression if no item is a tensor.
fn basic_of(items: &[Item]) -> Option<Basic> {
    items.iter().map(Item::plain).collect::<Option<_>>().map(Basic)
}

impl Tensor {
    /// Returns the part of the tensor that `items` select: a view, unless one of them is a tensor.
    ///
    /// Several tensors broadcast together, and their common axes replace the axes that they index.
    /// If a slice or a new axis stands between two of them, their axes come first in the result.
    ///
    /// ```
    /// # use inlay::{Item, Slice, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// let last = x.index(&[Item::Ellipsis, Item::At(-1)])?;
    /// assert_eq!(last.to_vec::<i32>()?, [3, 6]);
    ///
    /// let rows = Tensor::from_slice(&[1i64, 0, 1], &[3])?;
    /// let columns = Tensor::from_slice(&[0i64, 0, 2], &[3])?;
    /// let elements = x.index(&[Item::Tensor(rows), Item::Tensor(columns)])?;
    /// assert_eq!(elements.to_vec::<i32>()?, [4, 1, 6]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// More items than dimensions, positions out of range, a step of 0, a mask of another shape,
    /// tensors that don't broadcast together.
    #[track_caller]
    pub fn index(&self, items: &[Item]) -> Result<Tensor> {
        if let Some(basic) = basic_of(items) {
            return apply(ReadRegion(basic), &[self]);
        }
        within(GETITEM.name, || Flat::new(&GETITEM, self, items, true)?.read(&GETITEM, self))
    }

    /// Writes `value` to the part that `items` select. The value broadcasts to the shape of
    /// `self.index(items)`. If an element is selected several times, the last value wins.
    ///
    /// ```
    /// # use inlay::{Item, Tensor};
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// x.assign(&[Item::Ellipsis, Item::At(0)], &Tensor::from(9))?;
    /// assert_eq!(x.to_vec::<i32>()?, [9, 2, 9, 4]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::index`]; also dtypes that differ, a value that does not broadcast,
    /// memory that is read-only or overlaps itself. After an error, nothing was written.
    #[track_caller]
    pub fn assign(&self, items: &[Item], value: &Tensor) -> Result<()> {
        within(SETITEM.name, || self.write_item(items, value))
    }

    fn write_item(&self, items: &[Item], value: &Tensor) -> Result<()> {
        let op = SETITEM.name;
        value.meta().expect_dtype_of(op, "value", &self.meta(), "x")?;
        let value = &value.beside(op, "value", self, "x")?;
        if let Some(basic) = basic_of(items) {
            // In a program a size must belong to a node, so a read of the part is recorded.
            let (mut shape, _) = basic.shape(op, "x", &self.meta())?;
            if self.is_symbolic() {
                shape = apply(ReadRegion(basic.clone()), &[self])?.dims();
            }
            let value = value.stretched_as(&SETITEM, &shape)?;
            return apply_in_place(WriteRegion(basic), &[self, &value]).map(drop);
        }
        self.expect_target(op, "x")?;
        if let Some((basic, mask, axis)) = sole_mask(op, items, self.rank())? {
            return self.write_masked(basic, mask, axis, value);
        }
        let in_place = !self.is_symbolic() && !self.records_with(value);
        let flat = Flat::new(&SETITEM, self, items, in_place)?;
        flat.write(&SETITEM, self, value, Scatter::overwrite())
    }

    /// Writes `value` to the true places of a mask over the axes of a region from `axis` on.
    fn write_masked(&self, basic: Basic, mask: &Tensor, axis: usize, value: &Tensor) -> Result<()> {
        let view = apply(ReadRegion(basic.clone()), &[self])?;
        let (mask, value) = masked(&view, mask, axis, value)?;
        if self.is_symbolic() || self.records_with(&value) {
            // The tape records writes to the tensor itself, not to a view of it.
            let written = apply(MaskedScatter::KEEPS_SHAPE, &[&view, &mask, &value])?;
            return apply_in_place(WriteRegion(basic), &[self, &written]).map(drop);
        }
        view.masked_scatter_(&mask, &value).map(drop)
    }

    /// Whether a write of `value` into this tensor is recorded for a gradient.
    pub(super) fn records_with(&self, value: &Tensor) -> bool {
        (!self.stop_gradient() || !value.stop_gradient()) && is_grad_enabled()
    }

    /// Broadcasts the value of a write to `shape`. As in NumPy, the value may have extra leading
    /// dimensions of size 1.
    pub(super) fn stretched_as(
        &self,
        operation: &'static Operation,
        shape: &[Dim],
    ) -> Result<Tensor> {
        let extra = self.rank().saturating_sub(shape.len());
        let value = match self.dims()[..extra].iter().all(|size| size.may_equal(Dim::Known(1))) {
            true if extra > 0 => self.shaped(&self.dims()[extra..])?,
            _ => self.clone(),
        };
        value.stretched_for(operation, "value", shape)
    }
}

/// Returns the mask if it is the only tensor, with the region of the other items and the mask's
/// first axis in that region.
fn sole_mask<'a>(
    op: &'static str,
    items: &'a [Item],
    rank: usize,
) -> Result<Option<(Basic, &'a Tensor, usize)>> {
    let mut tensors = items.iter().enumerate().filter_map(|(k, item)| match item {
        Item::Tensor(tensor) => Some((k, tensor)),
        _ => None,
    });
    let (Some((at, mask)), None) = (tensors.next(), tensors.next()) else { return Ok(None) };
    if mask.dtype() != DType::Bool {
        return Ok(None);
    }
    let mut basic = SmallVec::new();
    for item in items {
        match item.plain() {
            Some(plain) => basic.push(plain),
            None => basic.extend(std::iter::repeat_n(Plain::Slice(Slice::ALL), mask.rank())),
        }
    }
    let basic = Basic(basic);
    // The items before the mask, with the ellipsis replaced by as many axes as it stands for, which
    // may be none.
    let left = basic.expand(op, rank)?.len() + 1 - basic.0.len();
    let axes = basic.0[..at].iter().map(|item| match item {
        Plain::At(_) => 0,
        Plain::Ellipsis => left,
        Plain::Slice(_) | Plain::NewAxis => 1,
    });
    let axis = axes.sum();
    Ok(Some((basic, mask, axis)))
}

/// Prepares a write to the true places of a mask over the axes of `view` from `axis` on. Returns
/// the mask in a shape that broadcasts to the view, and the value broadcast to the selected
/// elements.
fn masked(view: &Tensor, mask: &Tensor, axis: usize, value: &Tensor) -> Result<(Tensor, Tensor)> {
    let mask = &mask.beside(SETITEM.name, "mask", view, "x")?;
    let mask = &mask.fitting(&SETITEM, "mask", &view.dims()[axis..axis + mask.rank()])?;
    let ones = match mask.is_symbolic() {
        true => mask.true_places()?.dims()[0],
        false => Dim::Known(mask.sum(None, false)?.to_vec::<i64>()?[0] as usize),
    };
    let value = value.stretched_as(&SETITEM, &around(&view.dims(), axis, mask.rank(), &[ones]))?;
    let mut shape = Dims::from_elem(Dim::Known(1), axis);
    shape.extend_from_slice(&mask.dims());
    shape.resize(view.rank(), Dim::Known(1));
    Ok((mask.shaped(&shape)?, value))
}

/// Returns `shape` with `covered` axes from `axis` on replaced by `by`.
pub(super) fn around(shape: &[Dim], axis: usize, covered: usize, by: &[Dim]) -> Dims {
    [&shape[..axis], by, &shape[axis + covered..]].concat().into()
}
