//! `x[...]` and `x[...] = v`: integers, slices, new axes, and at most one tensor.

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
#[derive(Clone, Debug)]
pub enum Item {
    /// One position, whose axis is dropped.
    At(i64),
    /// A slice of an axis.
    Slice(Slice),
    /// As many whole axes as are left.
    Ellipsis,
    /// A new axis of size 1.
    NewAxis,
    /// Positions of an axis as an integer tensor, or true places of as many axes as a bool tensor
    /// has. At most one in an expression.
    Tensor(Tensor),
}

/// An index expression without tensors: a region.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Basic(SmallVec<[Plain; 6]>);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Plain {
    At(i64),
    Slice(Slice),
    Ellipsis,
    NewAxis,
}

/// More items than anybody writes: each new axis costs a look at all before it.
const MOST_ITEMS: usize = 128;

impl Basic {
    /// The items with the ellipsis, which is at the end if none is written, made whole axes.
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
    // The items are few and cheap to expand again; as a value they would be moved three times.
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
        let items = items.unwrap_or_else(|_| unreachable!("inference has seen the items"));
        let mut layout = x.clone();
        // `at` counts axes of the result, `axis` those of x.
        let (mut at, mut axis) = (0, 0);
        for item in items {
            match item {
                Plain::NewAxis => {
                    layout = layout.insert_axis(at);
                    at += 1;
                }
                Plain::At(index) => {
                    // Inference has seen that it is in range.
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

/// An index expression taken apart: what is left of it without its tensor, and the tensor.
struct Parts {
    basic: Basic,
    tensor: Option<(Tensor, usize)>,
}

impl Parts {
    /// `rank` is that of the indexed tensor.
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
                    // The tensor stands for whole axes, one or, for a mask, one for each of its own.
                    let covers = if found.dtype() == DType::Bool { found.rank() } else { 1 };
                    tensor = Some((found.clone(), basic.len()));
                    basic.extend(std::iter::repeat_n(Plain::Slice(Slice::ALL), covers));
                }
            }
        }
        let basic = Basic(basic);
        // Before the tensor's axes in the view come those of the items that keep or make one.
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

/// The view's axes `axis..` that a tensor index covers made one, and its positions on that one.
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
    /// The part of the tensor that `items` name: a view, unless one of them is a tensor.
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

    /// Writes `value`, which stretches to the shape of `self.index(items)`, to that part.
    ///
    /// # Errors
    /// As [`Tensor::index`]; also dtypes that differ, a value that does not stretch, memory that is
    /// read-only or overlaps itself. Then nothing was written.
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
            // In a program the sizes of the part are those of a node.
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
            // The tape sees writes to the tensor itself, not to a view of it.
            return apply_in_place(WriteRegion(basic), &[self, &write(false)?]).map(drop);
        }
        write(true).map(drop)
    }
}

/// Mask and value for a write to the true places of a mask over the axes `axis..` of a view, in the
/// view's own order: the mask's axes where they are, whole axes around.
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

/// The shape of `view` with `covered` axes from `axis` on replaced.
fn around(view: &Tensor, axis: usize, covered: usize, by: &[Dim]) -> Dims {
    let shape = view.dims();
    [&shape[..axis], by, &shape[axis + covered..]].concat().into()
}

fn stretched(value: &Tensor, shape: &[Dim]) -> Result<Tensor> {
    // As NumPy: leading dimensions of size 1 that the part does not have may be left out.
    let extra = value.rank().saturating_sub(shape.len());
    let value = match value.dims()[..extra].iter().all(|size| size.may_equal(Dim::Known(1))) {
        true if extra > 0 => value.shaped(&value.dims()[extra..])?,
        _ => value.clone(),
    };
    value.stretched_for(&SETITEM, "value", shape)
}
