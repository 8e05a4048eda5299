//! Linear recurrences: each row is computed from its own inputs and from another row.

use inlay_core::Result;

use super::rows::axis_first;
use super::{MAX_STEPS, Positions, expect};
use crate::View;
use crate::layout::count;
use crate::shader::{Kernel, wgsl_file};

/// Computes `to[i] = a[i] + c[i] * to[from[i]]` along `axis`, or `to[i] = a[i]` if `from[i]` is the
/// number of rows. One thread computes all rows of a column in order. `Positions::expect_chain`
/// checks that each row depends only on rows that are computed before it.
///
/// # Errors
/// The views don't fit, or the device can't compute with the dtype, is lost or refuses the call.
pub fn scan_rows(
    to: View<'_>,
    a: View<'_>,
    c: View<'_>,
    axis: usize,
    from: &Positions,
    backwards: bool,
) -> Result<()> {
    let op = "scan";
    expect::axis(op, axis, to.layout)?;
    expect::like(op, "a", a, to)?;
    expect::like(op, "c", c, to)?;
    let rows = from.count()?;
    expect::elements(op, "from", rows as usize, to.layout.shape()[axis])?;
    to.buffer.gpu().expect_arithmetic(op, to.dtype)?;
    if rows == 0 {
        return Ok(());
    }
    let width = count(to.layout.numel())? / rows;
    let [to_rows, a_rows, c_rows] = [to, a, c].map(|view| axis_first(view.layout, axis));
    for start in (0..rows).step_by(MAX_STEPS as usize) {
        Kernel::new(op, wgsl_file!("scan.wgsl"), to.buffer)
            .computes_in(to.dtype)
            .constant("BACKWARDS", backwards.into())
            .params(&[rows, start, rows.min(start + MAX_STEPS)])
            .words("p", from.words())
            .read("a", View { layout: &a_rows, ..a })?
            .read("c", View { layout: &c_rows, ..c })?
            .puts(View { layout: &to_rows, ..to })?
            .run(width)?;
    }
    Ok(())
}
