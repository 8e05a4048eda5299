//! The part of an index expression that a view expresses: positions, slices and new axes.

use inlay_core::{Dim, Dims, Error, Layout, Meta, Result, Slice};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{GETITEM, SETITEM};
use crate::declare::Operation;
use crate::ops::region::Region;
use crate::ops::select_scatter::position_of;
use crate::ops::slice_scatter::{selected, zero_step};

/// An index expression without tensors. It describes a region.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Basic(pub(in crate::ops) SmallVec<[Plain; 6]>);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(in crate::ops) enum Plain {
    At(i64),
    Slice(Slice),
    Ellipsis,
    NewAxis,
}

/// The maximum number of items. Inserting new axes takes time quadratic in their number.
const MOST_ITEMS: usize = 128;

impl Basic {
    /// Replaces the ellipsis by whole axes. Without an ellipsis, the whole axes are appended.
    pub(in crate::ops) fn expand(
        &self,
        op: &'static str,
        rank: usize,
    ) -> Result<SmallVec<[Plain; 6]>> {
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
