//! Triangles of matrices: the row and column numbers of their entries, and copies of triangles.

use inlay_core::{DType, Triangle};

use super::copy::{fill_run, move_run};
use crate::number::{dispatch, dispatch_width};
use crate::walk::Walk;
use crate::{Dst, Src, threads};

/// Returns how many entries of the first `rows` rows of a matrix with `cols` columns lie in the
/// triangle. It can't overflow: the result is at most `rows * cols`, which an `i128` holds.
pub fn triangle_len(triangle: Triangle, rows: usize, cols: usize, offset: i64) -> i128 {
    let (rows, cols, offset) = (rows as i128, cols as i128, offset as i128);
    match triangle {
        Triangle::Lower => lower(rows, cols, offset),
        // All entries but those with `column - row < offset`.
        Triangle::Upper => rows * cols - lower(rows, cols, offset - 1),
    }
}

/// Returns the largest row or column number of an entry of the triangle, or 0 if it has no entries.
pub fn triangle_largest(triangle: Triangle, rows: usize, cols: usize, offset: i64) -> usize {
    if triangle_len(triangle, rows, cols, offset) == 0 {
        return 0;
    }
    let (row, col, offset) = (rows as i128 - 1, cols as i128 - 1, offset as i128);
    let largest = match triangle {
        // A lower triangle reaches furthest to the right in the last row, an upper one in the first
        // row.
        Triangle::Lower => row.max(col.min(row + offset)),
        Triangle::Upper => col.max(row.min(col - offset)),
    };
    largest as usize
}

/// Returns the number of entries with `column - row <= offset`: the sum of `row + offset + 1`,
/// clamped to `0..=cols`, over all rows.
fn lower(rows: i128, cols: i128, offset: i128) -> i128 {
    let width = |row: i128| (row + offset + 1).clamp(0, cols);
    // Rows before `first` have no entries, and rows from `full` on have `cols`. Between them, each
    // row has one entry more than the previous one.
    let first = (-offset).clamp(0, rows);
    let full = (cols - offset - 1).clamp(first, rows);
    let growing = full - first;
    let sum = if growing > 0 { (width(first) + width(full - 1)) * growing / 2 } else { 0 };
    sum + (rows - full) * cols
}

/// Writes the row numbers and then the column numbers of the triangle's entries, in row-major
/// order, to `dst`. `dst` is contiguous, has the shape `[2, triangle_len(..)]` and an integer dtype
/// that can hold the numbers.
///
/// # Panics
/// When `dst` is not contiguous, has another number of elements, or has no integer dtype.
pub fn triangle_indices(dst: Dst<'_>, triangle: Triangle, rows: usize, cols: usize, offset: i64) {
    let dst = dst.into_target();
    let total = dst.layout().numel() / 2;
    let expected = triangle_len(triangle, rows, cols, offset);
    assert_eq!(total as i128, expected, "one column an entry");
    assert!(dst.layout().is_contiguous(dst.dtype().size()), "a contiguous destination");
    if total == 0 {
        return;
    }
    // Only rows that have entries are visited. There may be far more empty rows.
    let (height, width, diagonal) = (rows as i128, cols as i128, offset as i128);
    let (first, end) = match triangle {
        Triangle::Lower => ((-diagonal).clamp(0, height), height),
        Triangle::Upper => (0, (width - diagonal).clamp(0, height)),
    };
    let (first, count) = (first as usize, (end - first) as usize);
    let cost = (2 * dst.dtype().size()).saturating_mul(total.div_ceil(count.max(1)));
    dispatch!(integer dst.dtype(), T => threads::split(count, cost, |range| {
        let mut at = triangle_len(triangle, first + range.start, cols, offset) as usize;
        for row in range.map(|row| first + row) {
            // The column where the diagonal crosses the row.
            let crossing = row as i128 + diagonal;
            let (column, end) = match triangle {
                Triangle::Lower => (0, (crossing + 1).clamp(0, width) as usize),
                Triangle::Upper => (crossing.clamp(0, width) as usize, cols),
            };
            let next = at + (end - column);
            // SAFETY: the destination is contiguous and has `2 * total` elements of `T`, as was
            // checked above. `at..next` lies inside of `0..total`, and no other row has these
            // entries.
            unsafe {
                let rows_at = dst.origin().cast::<T>().add(at);
                let cols_at = rows_at.add(total);
                for k in 0..next - at {
                    rows_at.add(k).write_unaligned(row as T);
                }
                for k in 0..next - at {
                    cols_at.add(k).write_unaligned((column + k) as T);
                }
            }
            at = next;
        }
    }), else unreachable_dtype(dst.dtype()));
}

/// Copies the triangle of every matrix in the last two axes of `src` to `dst`. All other elements
/// of `dst` become 0.
///
/// # Panics
/// When the views overlap, differ in shape or element size, or have less than two axes.
pub fn keep_triangle(dst: Dst<'_>, src: Src<'_>, triangle: Triangle, offset: i64) {
    let dst = dst.into_target();
    dst.expect_apart(&src);
    let size = dst.same_size(&src);
    let shape = dst.layout().shape();
    assert!(shape.len() >= 2 && src.layout().shape() == shape, "matrices of one shape");
    let last = shape.len() - 1;
    let (rows, cols) = (shape[last - 1], shape[last]);
    let [to_step, from_step] = [dst.layout(), src.layout()].map(|layout| layout.strides()[last]);
    let [to_rows, from_rows] = [dst.layout(), src.layout()].map(|layout| layout.without_axis(last));
    let walk = Walk::new([&to_rows, &from_rows]);
    dispatch_width!(size, W => walk.parallel(2 * size * cols, |run| for k in 0..run.len {
        let row = ((run.position + k) % rows) as i128;
        // The column at which the row is cut: for a lower triangle the entries before it are kept,
        // for an upper one those from it on.
        let cut = match triangle {
            Triangle::Lower => row + offset as i128 + 1,
            Triangle::Upper => row + offset as i128,
        };
        let cut = cut.clamp(0, cols as i128) as usize;
        let (kept, cleared) = match triangle {
            Triangle::Lower => (0..cut, cut..cols),
            Triangle::Upper => (cut..cols, 0..cut),
        };
        let at = |n: usize| run.offsets[n] + k as isize * run.strides[n];
        // SAFETY: both views have one shape and element size and don't overlap, as was checked
        // above. The walk stays inside of the rows, and both ranges inside of the columns. Threads
        // have different rows.
        unsafe {
            let (to, from) = (dst.origin().offset(at(0)), src.origin().offset(at(1)));
            let start = kept.start as isize;
            let (part, source) = (to.offset(start * to_step), from.offset(start * from_step));
            move_run::<W>(part, to_step, source, from_step, kept.len());
            let part = to.offset(cleared.start as isize * to_step);
            fill_run::<W>(part, to_step, 0, cleared.len());
        }
    }));
}

#[cold]
fn unreachable_dtype(dtype: DType) {
    unreachable!("inference refuses triangle indices of {dtype}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_a_loop_counts() {
        for (rows, cols) in [(0, 0), (0, 4), (4, 0), (1, 1), (3, 5), (5, 3), (4, 4)] {
            for offset in (-8..=8).chain([i64::MIN, i64::MAX]) {
                let inside = |lower: bool| {
                    let entries =
                        (0..rows as i128).flat_map(|r| (0..cols as i128).map(move |c| c - r));
                    let offset = offset as i128;
                    entries.filter(|d| if lower { *d <= offset } else { *d >= offset }).count()
                };
                let largest = |lower: bool| {
                    let all =
                        (0..rows as i128).flat_map(|r| (0..cols as i128).map(move |c| (r, c)));
                    let inside = |d: i128| match lower {
                        true => d <= offset as i128,
                        false => d >= offset as i128,
                    };
                    let entries = all.filter(|(r, c)| inside(c - r));
                    entries.map(|(r, c)| r.max(c)).max().unwrap_or(0)
                };
                for (triangle, lower) in [(Triangle::Lower, true), (Triangle::Upper, false)] {
                    let got = triangle_len(triangle, rows, cols, offset);
                    assert_eq!(got, inside(lower) as i128, "{triangle:?} {rows} {cols} {offset}");
                    let got = triangle_largest(triangle, rows, cols, offset);
                    assert_eq!(got as i128, largest(lower), "{triangle:?} {rows} {cols} {offset}");
                }
            }
        }
    }
}
