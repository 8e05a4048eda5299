//! Copies transposed views in square tiles.

use std::mem::MaybeUninit;

use super::reducer::prefetch_far;
use super::turn::{turn, turn_part};
use crate::stream::{self, LINE};
use crate::view::Target;
use crate::walk::{Dimension, Walk};
use crate::{Src, threads};

/// Tiles are used only if both sides have at least this many elements. (Run by run, a copy of the
/// transpose of 4096 x 4096 `f32` takes 120 ms, because each element is read from another cache
/// line.)
const SHORTEST: usize = 8;

/// Tiles are prefetched this many tiles ahead, because their lines are far apart in memory. (Copy of
/// transposed 2000 x 2000 `f32` on one thread: 1.3 ms, and 1.7 ms without.)
const AHEAD: usize = 4;

/// A copy that is contiguous along one dimension of the destination and along another of the
/// source.
pub(super) struct Tiles {
    /// A walk over all other dimensions.
    rest: Walk<2>,
    /// The dimension along which the destination is contiguous.
    inner: Dimension<2>,
    /// The dimension along which the source is contiguous.
    cross: Dimension<2>,
}

impl Tiles {
    /// Returns the tiles of a walk, or `None` if its views are not transposed or too small.
    pub(super) fn of(walk: &Walk<2>, size: usize) -> Option<Tiles> {
        let dims = walk.dims();
        let (inner, outer) = dims.split_last()?;
        let size = size as isize;
        let jumps = inner.strides[0] == size && inner.strides[1].unsigned_abs() > size as usize;
        let at = outer.iter().position(|dim| dim.strides[1] == size)?;
        let cross = outer[at];
        let wide = inner.size >= SHORTEST && cross.size >= SHORTEST;
        (jumps && wide).then(|| Tiles {
            rest: walk.without(&[at, outer.len()]),
            inner: *inner,
            cross,
        })
    }

    /// Does the copy. Both sides of a tile are one cache line, so each line is read once and
    /// written once.
    pub(super) fn copy<W: Copy + Send + Sync>(&self, dst: Target<'_>, src: Src<'_>, streams: bool) {
        let side = const { LINE / size_of::<W>() };
        let (inner, cross) = (self.inner, self.cross);
        let (across, along) = (cross.size.div_ceil(side), inner.size.div_ceil(side));
        let squares = across * along;
        let cost = 2 * size_of::<W>() * side * side;
        let by = |n: usize, row: usize, column: usize| {
            row as isize * cross.strides[n] + column as isize * inner.strides[n]
        };
        threads::split(self.rest.len() * squares, cost, |items| {
            let mut square = Square([MaybeUninit::uninit(); LINE * LINE]);
            let square = square.0.as_mut_ptr().cast::<u8>();
            let rest = items.start / squares..items.end.div_ceil(squares);
            self.rest.runs(rest, |run| {
                for at in 0..run.len {
                    let first = (run.position + at) * squares;
                    let offset = |n: usize| run.offsets[n] + at as isize * run.strides[n];
                    for item in items.start.max(first)..items.end.min(first + squares) {
                        // Consecutive tiles are adjacent along the contiguous dimension of the
                        // source, so the hardware prefetcher loads them.
                        let tile = item - first;
                        let at = |tile: usize| (tile % across * side, tile / across * side);
                        let (row, column) = at(tile);
                        if tile + AHEAD < squares {
                            let (row, column) = at(tile + AHEAD);
                            let next = offset(1) + by(1, row, column);
                            for k in 0..side.min(inner.size - column) {
                                let next = next + k as isize * inner.strides[1];
                                prefetch_far(src.origin().wrapping_offset(next), 1);
                            }
                        }
                        let rows = side.min(cross.size - row);
                        let columns = side.min(inner.size - column);
                        // SAFETY: row and column lie inside of their dimensions, and the walk
                        // inside of the others, so all are elements of both views. `copy_with` has
                        // checked that the views don't overlap. No other item has these elements.
                        // The square has a line for each row, and it is written before it is read.
                        unsafe {
                            let from = src.origin().offset(offset(1) + by(1, row, column));
                            let to = dst.origin().offset(offset(0) + by(0, row, column));
                            if (rows, columns) == (side, side) {
                                turn::<W>(square, from, inner.strides[1]);
                            } else {
                                turn_part::<W>(square, from, inner.strides[1], rows, columns);
                            }
                            for j in 0..rows {
                                let (to, from) = (to.offset(by(0, j, 0)), square.add(j * LINE));
                                if columns < side {
                                    let bytes = columns * size_of::<W>();
                                    std::ptr::copy_nonoverlapping(from, to, bytes);
                                } else if streams {
                                    stream::copy(to, from, LINE);
                                } else {
                                    std::ptr::copy_nonoverlapping(from, to, LINE);
                                }
                            }
                        }
                    }
                }
            });
            if streams {
                stream::fence();
            }
        });
    }
}

/// A buffer for one tile: at most 64 cache lines, as many as a line has elements.
#[repr(align(64))]
struct Square([MaybeUninit<u8>; LINE * LINE]);
