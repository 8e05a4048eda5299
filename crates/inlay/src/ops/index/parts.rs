//! Splits an index expression with tensors into the axes that a view keeps, and the axes that are
//! merged into one, on which the tensors name positions.

use std::cmp::Reverse;
use std::ops::Range;

use inlay_core::{DType, Dim, Dims, Error, Result, ShapeText, Slice, broadcast_dims};
use smallvec::{SmallVec, smallvec};

use super::{Basic, Item, Plain};
use crate::Tensor;
use crate::declare::{Argument, ArgumentKind, Operation};
use crate::funnel::apply;
use crate::ops::flat::checked_index;
use crate::ops::region::{ReadRegion, Region};

/// The number of axes that a tensor indexes: one, or for a mask as many as it has.
pub(in crate::ops) fn covers(tensor: &Tensor) -> usize {
    if tensor.dtype() == DType::Bool { tensor.rank() } else { 1 }
}

/// One item. The ellipsis is replaced by whole axes.
enum Piece<'a> {
    Plain(Plain),
    /// A tensor, and the number of its item in the expression.
    Tensor(&'a Tensor, usize),
}

impl Piece<'_> {
    /// The number of axes that the item indexes.
    fn axes(&self) -> usize {
        match self {
            Piece::Plain(Plain::At(_) | Plain::Slice(_)) => 1,
            Piece::Plain(_) => 0,
            Piece::Tensor(tensor, _) => covers(tensor),
        }
    }

    /// Whether the item is an axis of the result by itself.
    fn is_kept(&self) -> bool {
        matches!(self, Piece::Plain(Plain::Slice(_) | Plain::NewAxis))
    }

    fn is_tensor(&self) -> bool {
        matches!(self, Piece::Tensor(..))
    }

    /// Whether the item is a tensor that has axes. A 0-D integer tensor only removes its axis, like
    /// an integer.
    fn has_axes(&self) -> bool {
        matches!(self, Piece::Tensor(tensor, _) if tensor.dtype() == DType::Bool || tensor.rank() > 0)
    }
}

/// Positions on one or more neighbouring axes.
struct Part {
    /// The first of the axes.
    axis: usize,
    axes: usize,
    positions: Tensor,
    /// For the positions of a slice: its number among the kept axes of the range.
    kept: Option<usize>,
}

/// An index expression with tensors.
pub(in crate::ops) struct Parts {
    /// What the items outside of the merged axes select.
    pub(in crate::ops) basic: Basic,
    /// The merged axes in the view that `basic` selects.
    pub(in crate::ops) merged: Range<usize>,
    /// The order of the view's axes in which the merged axes are merged, if it is not their own.
    pub(in crate::ops) perm: Option<Vec<i64>>,
    /// The positions on the merged axis, in the shape that replaces this axis in the result.
    pub(in crate::ops) positions: Tensor,
}

impl Parts {
    /// Splits `items`, of which at least one is a tensor. With `reorder`, the axes may be merged in
    /// the order of their strides, in which they can more often be merged without a copy.
    pub(in crate::ops) fn new(
        operation: &'static Operation,
        x: &Tensor,
        items: &[Item],
        reorder: bool,
    ) -> Result<Self> {
        let pieces = pieces(operation.name, x, items)?;
        let range = merged_pieces(&pieces);
        let mut basic = SmallVec::new();
        for (k, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Plain(plain) if !range.contains(&k) => basic.push(*plain),
                piece => basic.extend(std::iter::repeat_n(Plain::Slice(Slice::ALL), piece.axes())),
            }
        }
        let first = pieces[..range.start].iter().filter(|piece| piece.is_kept()).count();
        let axes: usize = pieces[range.clone()].iter().map(Piece::axes).sum();
        // The first merged axis, as an axis of x.
        let start: usize = pieces[..range.start].iter().map(Piece::axes).sum();
        let merged = first..first + axes;
        let range = &pieces[range];
        if let [Piece::Tensor(tensor, _)] = range
            && tensor.dtype() != DType::Bool
        {
            // The kernel that reads or writes the rows checks the index.
            let positions = tensor.beside(operation.name, "index", x, "x")?;
            return Ok(Parts { basic: Basic(basic), merged, perm: None, positions });
        }
        let mut parts = parts(operation, x, range, start)?;
        if reorder && !x.is_symbolic() {
            let strides = x.layout().strides();
            let stride = |part: &Part| match part.axes {
                0 => 0,
                axes => strides[part.axis + axes - 1].unsigned_abs(),
            };
            parts.sort_by_key(|part| Reverse(stride(part)));
        }
        let order: Vec<usize> =
            parts.iter().flat_map(|part| part.axis..part.axis + part.axes).collect();
        let perm = (!order.is_sorted()).then(|| {
            let moved = order.iter().map(|axis| axis - start + first);
            let rank = basic.iter().filter(|item| !matches!(item, Plain::At(_))).count();
            let all = (0..first).chain(moved).chain(first + axes..rank);
            all.map(|axis| axis as i64).collect()
        });
        let positions = positions(operation.name, x, range, &parts)?;
        Ok(Parts { basic: Basic(basic), merged, perm, positions })
    }
}

/// Replaces the ellipsis by whole axes, and checks the items that are not tensors.
fn pieces<'a>(op: &'static str, x: &Tensor, items: &'a [Item]) -> Result<Vec<Piece<'a>>> {
    let mut basic = SmallVec::new();
    for item in items {
        match (item.plain(), item) {
            (None, Item::Tensor(tensor)) => {
                basic.extend(std::iter::repeat_n(Plain::Slice(Slice::ALL), covers(tensor)));
            }
            (plain, _) => basic.extend(plain),
        }
    }
    let basic = Basic(basic);
    basic.shape(op, "x", &x.meta())?;
    let used = basic.0.iter().filter(|item| matches!(item, Plain::At(_) | Plain::Slice(_)));
    let left = x.rank() - used.count();
    let whole = || (0..left).map(|_| Piece::Plain(Plain::Slice(Slice::ALL)));
    let mut pieces = Vec::with_capacity(items.len() + left);
    let mut found = false;
    for (number, item) in items.iter().enumerate() {
        match (item.plain(), item) {
            (Some(Plain::Ellipsis), _) => {
                found = true;
                pieces.extend(whole());
            }
            (Some(plain), _) => pieces.push(Piece::Plain(plain)),
            (None, Item::Tensor(tensor)) => pieces.push(Piece::Tensor(tensor, number)),
            (None, _) => {}
        }
    }
    if !found {
        pieces.extend(whole());
    }
    Ok(pieces)
}

/// Whether an item between two tensors keeps an axis, so that the axes of the tensors come first in
/// the result.
fn is_separated(pieces: &[Piece<'_>]) -> bool {
    let first = pieces.iter().position(Piece::has_axes);
    let last = pieces.iter().rposition(Piece::has_axes);
    match (first, last) {
        (Some(first), Some(last)) => pieces[first..last].iter().any(Piece::is_kept),
        _ => false,
    }
}

/// Returns the items whose axes are merged: those from the first to the last tensor. If the axes of
/// the tensors come first in the result, all items before them belong to the range, too.
fn merged_pieces(pieces: &[Piece<'_>]) -> Range<usize> {
    let last = pieces.iter().rposition(Piece::is_tensor).map_or(0, |last| last + 1);
    let is_start = |piece: &Piece<'_>| match is_separated(pieces) {
        true => !matches!(piece, Piece::Plain(Plain::At(_))),
        false => piece.is_tensor(),
    };
    pieces.iter().position(is_start).unwrap_or(0)..last
}

/// Returns the positions of the items of `range`, whose first axis is `start`. New axes have none.
fn parts(
    operation: &'static Operation,
    x: &Tensor,
    range: &[Piece<'_>],
    start: usize,
) -> Result<Vec<Part>> {
    let (op, dims) = (operation.name, x.dims());
    let several = range.iter().filter(|piece| piece.is_tensor()).count() > 1;
    // The positions of `gather_nd` and its kin are columns of one index, which have no numbers.
    let lists = |argument: &Argument| argument.kind == ArgumentKind::Indices;
    let numbered = several && (operation.body.is_none() || operation.arguments.iter().any(lists));
    let mut parts = Vec::with_capacity(range.len());
    let (mut axis, mut kept) = (start, 0);
    for piece in range {
        let positions = match piece {
            Piece::Tensor(tensor, number) => {
                let tensor = tensor.beside(op, "index", x, "x")?;
                Some(match tensor.dtype() {
                    DType::Bool => {
                        let covered = &dims[axis..axis + tensor.rank()];
                        tensor.fitting(operation, "mask", covered)?.true_places()?
                    }
                    _ => {
                        let number = numbered.then_some(*number);
                        checked_index(operation, number, &tensor, axis, dims[axis])?
                    }
                })
            }
            Piece::Plain(Plain::At(index)) => {
                let index = Tensor::number(op, "index", *index, DType::I64)?;
                let index = index.beside(op, "index", x, "x")?;
                Some(checked_index(operation, None, &index, axis, dims[axis])?)
            }
            Piece::Plain(Plain::Slice(slice)) => {
                let numbers = x.numbers(dims[axis])?;
                Some(match *slice == Slice::ALL {
                    true => numbers,
                    false => {
                        let slice = Basic(smallvec![Plain::Slice(*slice)]);
                        apply(ReadRegion(slice), &[&numbers])?
                    }
                })
            }
            Piece::Plain(_) => None,
        };
        if let Some(positions) = positions {
            let place = piece.is_kept().then_some(kept);
            parts.push(Part { axis, axes: piece.axes(), positions, kept: place });
        }
        kept += usize::from(piece.is_kept());
        axis += piece.axes();
    }
    Ok(parts)
}

/// Combines the positions of `parts`, which are in the order in which their axes are merged. In the
/// shape of the result, the common axes of the tensors are among the kept axes of the range.
fn positions(op: &'static str, x: &Tensor, range: &[Piece<'_>], parts: &[Part]) -> Result<Tensor> {
    let dims = x.dims();
    let kept = range.iter().filter(|piece| piece.is_kept()).count();
    let before = match is_separated(range) {
        true => 0,
        false => {
            let placed = range.iter().position(Piece::has_axes).unwrap_or(0);
            range[..placed].iter().filter(|piece| piece.is_kept()).count()
        }
    };
    let mut common = Dims::new();
    for part in parts.iter().filter(|part| part.kept.is_none()) {
        let own = part.positions.dims();
        common = broadcast_dims(&[&common, &own]).ok_or_else(|| {
            let (a, b) = (ShapeText::of(&common), ShapeText::of(&own));
            Error::BroadcastTogether { op, a, b }
        })?;
    }
    // The kept axes are summed first, so that only the last sum is as large as the result.
    let (mut ours, mut theirs): (Option<Tensor>, Option<Tensor>) = (None, None);
    for (k, part) in parts.iter().enumerate() {
        let later = parts[k + 1..].iter().flat_map(|part| part.axis..part.axis + part.axes);
        let later: SmallVec<[Dim; 6]> = later.map(|axis| dims[axis]).collect();
        let mut term = match later.is_empty() {
            true => part.positions.clone(),
            false => part.positions.multiply(&x.count(&later, DType::I64)?)?,
        };
        let (sum, trailing) = match part.kept {
            None => (&mut ours, kept - before),
            Some(place) if place < before => (&mut theirs, common.len() + kept - place - 1),
            Some(place) => (&mut theirs, kept - place - 1),
        };
        for _ in 0..trailing {
            term = term.merged(term.rank(), 0)?;
        }
        *sum = Some(match sum.take() {
            None => term,
            Some(sum) => sum.add(&term)?,
        });
    }
    let sum = match (ours, theirs) {
        (Some(ours), Some(theirs)) => ours.add(&theirs)?,
        (ours, theirs) => match ours.or(theirs) {
            Some(sum) => sum,
            None => Tensor::number(op, "index", 0, DType::I64)?,
        },
    };
    // New axes in front have no positions.
    let mut all = sum;
    while all.rank() < common.len() + kept {
        all = all.merged(0, 0)?;
    }
    Ok(all)
}
