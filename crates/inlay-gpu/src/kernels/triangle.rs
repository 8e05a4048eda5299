//! Triangles of matrices.

use inlay_core::{Result, Triangle};

use crate::View;
use crate::layout::count;
use crate::shader::Kernel;

/// How many entries each row has: `before` rows of `same`, a ramp of so many that begins with
/// `first` and goes up or down by one, and then rows of `after`.
struct Rows {
    before: u32,
    same: u32,
    ramp: u32,
    first: u32,
    after: u32,
}

impl Rows {
    fn new(triangle: Triangle, rows: usize, cols: usize, offset: i64) -> Result<Self> {
        let (rows, cols) = (i128::from(count(rows)?), i128::from(count(cols)?));
        let offset = i128::from(offset);
        let row = |at: i128| at.clamp(0, rows) as u32;
        Ok(match triangle {
            Triangle::Lower => {
                // Row r has r + offset + 1 entries, from none to all.
                let (empty, full) = (-offset, cols - offset - 1);
                let before = row(empty);
                let first = (i128::from(before) + offset + 1).clamp(0, cols) as u32;
                Rows {
                    before,
                    same: 0,
                    ramp: row(full).saturating_sub(before),
                    first,
                    after: cols as u32,
                }
            }
            Triangle::Upper => {
                // Row r has cols - (r + offset) entries, from all to none.
                let (full, empty) = (-offset, cols - offset);
                let before = row(full);
                let first = (cols - i128::from(before) - offset).clamp(0, cols) as u32;
                Rows {
                    before,
                    same: cols as u32,
                    ramp: row(empty).saturating_sub(before),
                    first,
                    after: 0,
                }
            }
        })
    }
}

/// Rows and columns of the triangle's entries, to `to` of shape `[2, entries]` of integers.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn triangle_indices(
    to: View<'_>,
    triangle: Triangle,
    (rows, cols): (usize, usize),
    offset: i64,
) -> Result<()> {
    let Rows { before, same, ramp, first, after } = Rows::new(triangle, rows, cols, offset)?;
    let entries = count(to.layout.numel() / 2)?;
    // Upper triangles begin at the diagonal, from the first row on that it meets.
    let start = (i128::from(before) + i128::from(offset)).clamp(0, cols as i128) as u32;
    let cast = match to.size() {
        8 => "fn word(v: u32) -> Word { return Word(v, 0u); }\n",
        _ => "fn word(v: u32) -> Word { return v; }\n",
    };
    Kernel::new("triangle_indices", include_str!("triangle_indices.wgsl"), to.buffer)
        .with(if to.size() == 8 { "wide" } else { "narrow" }, cast)
        .constant("UPPER", (triangle == Triangle::Upper).into())
        .params(&[rows as u32, entries, start, before, same, ramp, first, after])
        .to(to)
}

/// `to` is the triangle of the last two axes of `from`, and 0 beside it.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn keep_triangle(to: View<'_>, from: View<'_>, triangle: Triangle, offset: i64) -> Result<()> {
    let &[.., rows, cols] = from.layout.shape() else { unreachable!("two axes at least") };
    let by = u32::try_from(offset.unsigned_abs()).unwrap_or(u32::MAX);
    Kernel::new("keep_triangle", include_str!("keep_triangle.wgsl"), to.buffer)
        .constant("UPPER", (triangle == Triangle::Upper).into())
        .params(&[count(rows)?, count(cols)?, by, (offset < 0).into()])
        .read("a", from)?
        .to(to)
}
