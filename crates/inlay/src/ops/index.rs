//! `x[...]` and `x[...] = v`, with integers, slices, new axes and at most one tensor.

use inlay_core::{Dim, Dims, Error, Layout, Meta, Result, Slice};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::index_select::IndexSelect;
use super::names::Caller;
use super::region::{ReadRegion, Region, WriteRegion};
use super::select_scatter::position_of;
use super::slice_scatter::{selected, zero_step};
use crate::declare::{Operation, declare};
use crate::funnel::{apply, apply_in_place};
use crate::site::within;
use crate::tape::is_grad_enabled;
use crate::{DType, Scatter, Tensor};

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
    /// itself. An expression has at most one tensor.
    Tensor(Tensor),
}

/// An index expression without tensors. It describes a region.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Basic(SmallVec<[Plain; 6]>);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Plain {
    At(i64),
    Slice(Slice),
    Ellipsis,
    NewAxis,
}

/// The maximum number of items. Inserting new axes takes time quadratic in their number.
const MOST_ITEMS: usize = 128;

impl Basic {
    /// Replaces the ellipsis by whole axes. Without an ellipsis, the whole axes are appended.
    fn expand(&self, op: &'static str, rank: usize) -> Result<SmallVec<[Plain; 6]>> {
        let used = self.0.iter().filter(|item| matches!(item, Plain::At(_) | Plain::Slice(_)));
        let used = used.count();
        if self.0.len() > MOST_ITEMS {
            let expected = format!("at most {MOST_ITEMS} items");
            return Err(Error::TooManyIndices { op, got: self.0.len(), expected });
        }
        let Some(left) = rank.checked_sub(used) else {
            let expected = format!("at most {rank} items, as x has {rank} dimensions");
            return Err(Error::TooManyIndices { op, got: used, expected });
        };
        let whole = std::iter::repeat_n(Plain::Slice(Slice::ALL), left);
        let mut out = SmallVec::new();
        let mut found = false;
        for &item in &self.0 {
            if item == Plain::Ellipsis {
                if found {
                    let expected = "one ellipsis at most".into();
                    return Err(Error::TooManyIndices { op, got: 2, expected });
                }
                found = true;
                out.extend(whole.clone());
            } else {
                out.push(item);
            }
        }
        if !found {
            out.extend(whole);
        }
        Ok(out)
    }
}

impl Region for Basic {
    // Expanding the few items again is cheaper than moving the expanded list.
    type Found = ();

    fn reader(&self) -> &'static Operation {
        &GETITEM
    }

    fn writer(&self) -> &'static Operation {
        &SETITEM
    }

    fn shape(&self, op: &'static str, _arg: &'static str, x: &Meta) -> Result<(Dims, Self::Found)> {
        let mut shape = Dims::new();
        let mut axis = 0;
        for item in self.expand(op, x.rank())? {
            match item {
                Plain::NewAxis => shape.push(Dim::Known(1)),
                Plain::At(index) => {
                    if let Dim::Known(size) = x.shape[axis] {
                        position_of(op, index, axis, size)?;
                    }
                    axis += 1;
                }
                Plain::Slice(slice) => {
                    slice.resolve(0).ok_or_else(|| zero_step(op))?;
                    let len = |size| selected(slice, size).len;
                    let whole = slice == Slice::ALL;
                    shape.push(if whole { x.shape[axis] } else { x.shape[axis].map(len) });
                    axis += 1;
                }
                Plain::Ellipsis => {}
            }
        }
        Ok((shape, ()))
    }

    fn layout(&self, (): &(), x: &Layout) -> Layout {
        let items = self.expand(GETITEM.name, x.rank());
        let items = items.unwrap_or_else(|_| unreachable!("`shape` has expanded the same items"));
        let mut layout = x.clone();
        // `at` is an axis of the result, `axis` an axis of x.
        let (mut at, mut axis) = (0, 0);
        for item in items {
            match item {
                Plain::NewAxis => {
                    layout = layout.insert_axis(at);
                    at += 1;
                }
                Plain::At(index) => {
                    // `shape` has checked that the index is in range.
                    let size = x.shape()[axis];
                    let position = if index < 0 { index + size as i64 } else { index };
                    layout = layout.select(at, position as usize);
                    axis += 1;
                }
                Plain::Slice(slice) => {
                    layout = layout.slice(at, selected(slice, x.shape()[axis]));
                    (at, axis) = (at + 1, axis + 1);
                }
                Plain::Ellipsis => {}
            }
        }
        layout
    }
}

/// An index expression, split into its basic part and its tensor with the tensor's axis in the
/// view.
struct Parts {
    basic: Basic,
    tensor: Option<(Tensor, usize)>,
}

impl Parts {
    /// Splits `items`. `rank` is the rank of the indexed tensor.
    fn new(op: &'static str, items: &[Item], rank: usize) -> Result<Self> {
        let mut basic = SmallVec::new();
        let mut tensor = None;
        for item in items {
            match item {
                Item::At(index) => basic.push(Plain::At(*index)),
                Item::Slice(slice) => basic.push(Plain::Slice(*slice)),
                Item::Ellipsis => basic.push(Plain::Ellipsis),
                Item::NewAxis => basic.push(Plain::NewAxis),
                Item::Tensor(found) => {
                    if tensor.is_some() {
                        let expected = "one tensor at most".into();
                        return Err(Error::TooManyIndices { op, got: 2, expected });
                    }
                    // In the basic part, whole axes stand for the tensor: one, or for a mask as
                    // many as it has.
                    let covers = if found.dtype() == DType::Bool { found.rank() } else { 1 };
                    tensor = Some((found.clone(), basic.len()));
                    basic.extend(std::iter::repeat_n(Plain::Slice(Slice::ALL), covers));
                }
            }
        }
        let basic = Basic(basic);
        // The tensor's axis is the number of axes that the items before it keep or insert.
        let tensor = match tensor {
            None => None,
            Some((found, at)) => {
                let used = |item: &&Plain| matches!(item, Plain::At(_) | Plain::Slice(_));
                let left = rank.saturating_sub(basic.0.iter().filter(used).count());
                let axes = basic.0[..at].iter().map(|item| match item {
                    Plain::At(_) => 0,
                    Plain::Ellipsis => left,
                    Plain::Slice(_) | Plain::NewAxis => 1,
                });
                Some((found, axes.sum()))
            }
        };
        Ok(Parts { basic, tensor })
    }
}

/// Merges the axes of `view` from `axis` on that a tensor index covers. Returns the merged view,
/// the positions on the merged axis, and the shape that replaces this axis in the result.
fn positions(
    operation: &'static Operation,
    view: &Tensor,
    tensor: &Tensor,
    axis: usize,
) -> Result<(Tensor, Tensor, Dims)> {
    let tensor = &tensor.beside(operation.name, "index", view, "x")?;
    if tensor.dtype() != DType::Bool {
        let flat = tensor.reshape(&[-1])?;
        return Ok((view.clone(), flat, tensor.dims()));
    }
    let mask = tensor.fitting(operation, "mask", &view.dims()[axis..axis + tensor.rank()])?;
    let merged = view.merged(axis, tensor.rank())?;
    let found = mask.true_places()?;
    let shape = found.dims();
    Ok((merged, found, shape))
}

impl Tensor {
    /// Returns the part of the tensor that `items` select: a view, unless one of them is a tensor.
    ///
    /// ```
    /// # use inlay::{Item, Slice, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// let last = x.index(&[Item::Ellipsis, Item::At(-1)])?;
    /// assert_eq!(last.to_vec::<i32>()?, [3, 6]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// More items than dimensions, positions out of range, a step of 0, a mask of another shape.
    #[track_caller]
    pub fn index(&self, items: &[Item]) -> Result<Tensor> {
        let Parts { basic, tensor } = Parts::new(GETITEM.name, items, self.rank())?;
        let view = apply(ReadRegion(basic), &[self])?;
        let Some((tensor, axis)) = tensor else { return Ok(view) };
        let (view, index, shape) = positions(&GETITEM, &view, &tensor, axis)?;
        let select = IndexSelect { name: Caller(&GETITEM), axis: axis as i64 };
        let rows = apply(select, &[&view, &index])?;
        rows.shaped(&around(&view, axis, 1, &shape))
    }

    /// Writes `value` to the part that `items` select. The value broadcasts to the shape of
    /// `self.index(items)`.
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
        let Parts { basic, tensor } = Parts::new(op, items, self.rank())?;
        let Some((tensor, axis)) = tensor else {
            // In a program a size must belong to a node, so a read of the part is recorded.
            let (mut shape, _) = basic.shape(op, "x", &self.meta())?;
            if self.is_symbolic() {
                shape = apply(ReadRegion(basic.clone()), &[self])?.dims();
            }
            let value = stretched(value, &shape)?;
            return apply_in_place(WriteRegion(basic), &[self, &value]).map(drop);
        };
        self.expect_target(op, "x")?;
        let view = apply(ReadRegion(basic.clone()), &[self])?;
        let write: Box<dyn Fn(bool) -> Result<Tensor>> = if tensor.dtype() == DType::Bool {
            let (mask, value) = masked(&view, &tensor, axis, value)?;
            let view = view.clone();
            Box::new(move |in_place| match in_place {
                true => view.masked_scatter_(&mask, &value).cloned(),
                false => view.masked_scatter(&mask, &value),
            })
        } else {
            let (view, index, shape) = positions(&SETITEM, &view, &tensor, axis)?;
            let value = stretched(value, &around(&view, axis, 1, &shape))?;
            let rows = value.merged(axis, shape.len())?;
            let how = Scatter::overwrite().axis(axis as i64).called(&SETITEM);
            Box::new(move |in_place| match in_place {
                true => view.scatter_(&index, &rows, how).cloned(),
                false => view.scatter(&index, &rows, how),
            })
        };
        let tracked = !self.stop_gradient() || !value.stop_gradient();
        if self.is_symbolic() || (tracked && is_grad_enabled()) {
            // The tape records writes to the tensor itself, not to a view of it.
            return apply_in_place(WriteRegion(basic), &[self, &write(false)?]).map(drop);
        }
        write(true).map(drop)
    }
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
    let value = stretched(value, &around(view, axis, mask.rank(), &[ones]))?;
    let mut shape = Dims::from_elem(Dim::Known(1), axis);
    shape.extend_from_slice(&mask.dims());
    shape.resize(view.rank(), Dim::Known(1));
    Ok((mask.shaped(&shape)?, value))
}

/// Returns the shape of `view` with `covered` axes from `axis` on replaced by `by`.
fn around(view: &Tensor, axis: usize, covered: usize, by: &[Dim]) -> Dims {
    let shape = view.dims();
    [&shape[..axis], by, &shape[axis + covered..]].concat().into()
}

fn stretched(value: &Tensor, shape: &[Dim]) -> Result<Tensor> {
    // As in NumPy, the value may have extra leading dimensions of size 1.
    let extra = value.rank().saturating_sub(shape.len());
    let value = match value.dims()[..extra].iter().all(|size| size.may_equal(Dim::Known(1))) {
        true if extra > 0 => value.shaped(&value.dims()[extra..])?,
        _ => value.clone(),
    };
    value.stretched_for(&SETITEM, "value", shape)
}
