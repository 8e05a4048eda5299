//! Copies of transposed views in square tiles.

use std::mem::MaybeUninit;

use super::turn::{turn, turn_part};
use crate::stream::{self, LINE};
use crate::view::Target;
use crate::walk::{Dimension, Walk};
use crate::{Src, threads};

/// The shortest side for which tiles are used. (A copy of the transpose of 4096 x 4096 floats takes 120 ms
/// run by run, because each element is read from another cache line.)
const SHORTEST: usize = 8;

/// A copy that is contiguous along one dimension of the destination and along another of the source.
pub(super) struct Tiles {
    /// All other dimensions.
    rest: Walk<2>,
    /// The dimension along which the destination is contiguous.
    inner: Dimension<2>,
    /// The dimension along which the source is contiguous.
    cross: Dimension<2>,
}

impl Tiles {
    /// The tiles of a walk; `None` if its views are not transposed.
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

    /// Does the copy. A tile is a cache line wide on both sides, so each line is read once and written
    /// once.
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
                        // Tiles follow each other along the lines of the source, so that the hardware
                        // prefetcher loads them.
                        let tile = item - first;
                        let (row, column) = (tile % across * side, tile / across * side);
                        let rows = side.min(cross.size - row);
                        let columns = side.min(inner.size - column);
                        // SAFETY: row and column lie inside of their dimensions, and the walk
                        // inside of the others, so that all are elements of both views, which lie
                        // apart; no other item has them. The square has a line for each row, and
                        // what is read of it was written before.
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

/// A buffer of one tile: a line for each element of a line.
#[repr(align(64))]
struct Square([MaybeUninit<u8>; LINE * LINE]);
