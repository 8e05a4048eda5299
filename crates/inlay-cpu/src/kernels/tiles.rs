//! Copies between views of which one is a transpose of the other, square by square.

use std::mem::MaybeUninit;

use crate::walk::{Dimension, Walk};
use crate::{Dst, Src, threads};

/// Bytes along each side of a square: two lines, so that neighbours are fetched ahead, and few
/// enough that a square of bytes (16 KiB) still fits into a first-level cache.
const SIDE: usize = 128;

/// Fewer elements than this along either side are not worth a square. A copy of the transpose of
/// 4096x4096 f32 takes 120 ms run by run, for each element reads a line of its own.
const SHORTEST: usize = 8;

/// A copy whose runs are neighbours in the destination, and which has another dimension along which
/// neighbours lie in the source.
pub(super) struct Tiles {
    /// All other dimensions.
    rest: Walk<2>,
    /// Along which the destination's neighbours lie.
    inner: Dimension<2>,
    /// Along which the source's neighbours lie.
    cross: Dimension<2>,
}

impl Tiles {
    /// The squares of a walk, if it has any.
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

    /// Does the copy.
    pub(super) fn copy<W: Copy + Send + Sync>(&self, dst: Dst<'_>, src: Src<'_>) {
        let side = SIDE / size_of::<W>().max(2);
        let (inner, cross) = (self.inner, self.cross);
        let (across, along) = (cross.size.div_ceil(side), inner.size.div_ceil(side));
        // Squares follow each other along the destination's runs.
        let cost = 2 * size_of::<W>() * side * side;
        threads::split(self.rest.len() * across * along, cost, |items| {
            let mut square = [[const { MaybeUninit::<W>::uninit() }; SIDE / 2]; SIDE / 2];
            for item in items {
                let (at, tile) = (item / (across * along), item % (across * along));
                let (row, column) = (tile / along * side, tile % along * side);
                let (rows, columns) = (side.min(cross.size - row), side.min(inner.size - column));
                let by = |n: usize, row: usize, column: usize| {
                    row as isize * cross.strides[n] + column as isize * inner.strides[n]
                };
                self.rest.runs(at..at + 1, |run| {
                    // SAFETY: row and column lie inside of their dimensions, and the walk inside
                    // of the others, so that all are elements of both views, which lie apart; no
                    // other item has them; the square's parts are written before they are read.
                    unsafe {
                        let to = dst.origin().offset(run.offsets[0]);
                        let from = src.origin().offset(run.offsets[1]);
                        for k in 0..columns {
                            let line = from.offset(by(1, row, column + k)).cast::<W>();
                            for j in 0..rows {
                                let word = line.add(j).read_unaligned();
                                square[j].get_unchecked_mut(k).write(word);
                            }
                        }
                        for (j, line) in square[..rows].iter().enumerate() {
                            let to = to.offset(by(0, row + j, column));
                            let bytes = columns * size_of::<W>();
                            std::ptr::copy_nonoverlapping(line.as_ptr().cast::<u8>(), to, bytes);
                        }
                    }
                });
            }
        });
    }
}
