//! Kernels for the lower or upper triangle of matrices.

use inlay_core::{Error, Result, Triangle};

use super::expect;
use crate::View;
use crate::layout::count;
use crate::shader::{Kernel, wgsl, wgsl_file};

/// The number of elements of the triangle in each row. The first `before` rows have `same`
/// elements. Then come `ramp` rows: the first has `first` elements, and each next row has one more
/// (upper triangle: one less). All further rows have `after` elements.
struct RowLengths {
    before: u32,
    same: u32,
    ramp: u32,
    first: u32,
    after: u32,
}

impl RowLengths {
    fn new(triangle: Triangle, rows: usize, cols: usize, offset: i64) -> Result<Self> {
        let (rows, cols) = (i128::from(count(rows)?), i128::from(count(cols)?));
        let offset = i128::from(offset);
        // The rows where the ramp begins and ends, and the row lengths before and after it.
        let (begin, end, same, after) = match triangle {
            // Row r has r + offset + 1 elements, clamped to 0..=cols.
            Triangle::Lower => (-offset, cols - offset - 1, 0, cols),
            // Row r has cols - (r + offset) elements, clamped to 0..=cols.
            Triangle::Upper => (-offset, cols - offset, cols, 0),
        };
        let row = |at: i128| at.clamp(0, rows);
        let before = row(begin);
        let first = match triangle {
            Triangle::Lower => before + offset + 1,
            Triangle::Upper => cols - before - offset,
        };
        Ok(RowLengths {
            before: before as u32,
            same: same as u32,
            ramp: (row(end) - before).max(0) as u32,
            first: first.clamp(0, cols) as u32,
            after: after as u32,
        })
    }

    /// Returns the number of elements in a matrix of `rows` rows.
    fn total(&self, rows: usize, triangle: Triangle) -> i128 {
        let [before, same, ramp, first, after] =
            [self.before, self.same, self.ramp, self.first, self.after].map(i128::from);
        let steps = ramp * (ramp - 1) / 2;
        let steps = if triangle == Triangle::Upper { -steps } else { steps };
        before * same + ramp * first + steps + (rows as i128 - before - ramp) * after
    }
}

/// Writes the row and the column of each element of the triangle to `to`, which has shape
/// `[2, elements]` and an integer dtype.
///
/// # Errors
/// The view doesn't fit, or the device is lost or refuses the call.
pub fn triangle_indices(
    to: View<'_>,
    triangle: Triangle,
    (rows, cols): (usize, usize),
    offset: i64,
) -> Result<()> {
    let op = "triangle_indices";
    let lengths = RowLengths::new(triangle, rows, cols, offset)?;
    let elements = count(usize::try_from(lengths.total(rows, triangle)).unwrap_or(usize::MAX))?;
    expect::shape(op, "to", to.layout.shape(), &[2, elements as usize])?;
    if to.dtype.integer_range().is_none() {
        return Err(Error::DType { op, arg: "to", got: to.dtype, expected: "an integer" });
    }
    let stored = match to.size() {
        8 => wgsl!("fn stored(v: u32) -> Stored { return Stored(v, 0u); }\n"),
        _ => wgsl!("fn stored(v: u32) -> Stored { return v; }\n"),
    };
    let RowLengths { before, same, ramp, first, after } = lengths;
    // The first column of the upper triangle in row `before`, where the ramp begins.
    let start = (i128::from(before) + i128::from(offset)).clamp(0, cols as i128) as u32;
    Kernel::new(op, wgsl_file!("triangle_indices.wgsl"), to.buffer)
        .with(stored)
        .constant("UPPER", (triangle == Triangle::Upper).into())
        .params(&[rows as u32, elements, start, before, same, ramp, first, after])
        .to(to)
}

/// Copies the triangle of the last two axes of `from` to `to`. Elements outside of it become 0.
///
/// # Errors
/// The views don't fit, or the device is lost or refuses the call.
pub fn keep_triangle(to: View<'_>, from: View<'_>, triangle: Triangle, offset: i64) -> Result<()> {
    let (op, rank) = ("keep_triangle", from.layout.rank());
    let &[.., rows, cols] = from.layout.shape() else {
        return Err(Error::Rank { op, arg: "from", got: rank, expected: "at least 2" });
    };
    expect::like(op, "from", from, to)?;
    let by = u32::try_from(offset.unsigned_abs()).unwrap_or(u32::MAX);
    Kernel::new(op, wgsl_file!("keep_triangle.wgsl"), to.buffer)
        .constant("UPPER", (triangle == Triangle::Upper).into())
        .params(&[count(rows)?, count(cols)?, by, (offset < 0).into()])
        .read("a", from)?
        .to(to)
}
