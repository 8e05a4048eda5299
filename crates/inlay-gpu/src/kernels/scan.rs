//! Chains: each row is made of its own and of an earlier one.

use inlay_core::Result;

use super::Positions;
use super::rows::axis_first;
use crate::View;
use crate::layout::count;
use crate::shader::{Access, Kernel};

/// `to[i] = a[i] + c[i] * to[from[i]]` along `axis`, or just `a[i]` where `from[i]` is no entry. A
/// thread has a column, and its rows in order.
///
/// # Errors
/// A device that can't compute with the dtype, is gone, or refuses.
pub fn scan_rows(
    to: View<'_>,
    a: View<'_>,
    c: View<'_>,
    axis: usize,
    from: &Positions,
    backwards: bool,
) -> Result<()> {
    to.buffer.gpu().expect_arithmetic("scan", to.dtype)?;
    let rows = from.count()?;
    if rows == 0 {
        return Ok(());
    }
    let width = count(to.layout.numel())? / rows;
    let [to_rows, a_rows, c_rows] = [to, a, c].map(|view| axis_first(view.layout, axis));
    for start in (0..rows).step_by(SPAN as usize) {
        Kernel::new("scan", include_str!("scan.wgsl"), to.buffer)
            .numbers(to.dtype)
            .constant("BACKWARDS", backwards.into())
            .params(&[rows, start, rows.min(start + SPAN)])
            .words("p", from.words())
            .read("a", View { layout: &a_rows, ..a })?
            .read("c", View { layout: &c_rows, ..c })?
            .operand("to", to.buffer, to.size(), Access::Put)
            .block("to", View { layout: &to_rows, ..to })?
            .run(width)?;
    }
    Ok(())
}

/// Rows that a thread takes at a time: a device in software ends loops after 65,535 steps and says
/// nothing.
const SPAN: u32 = 1 << 15;
