//! Copies from view to view.

use inlay_core::Result;

use crate::shader::Kernel;
use crate::{View, batch, layout};

/// `to = from`, of one shape and element size.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn copy(to: View<'_>, from: View<'_>) -> Result<()> {
    if let Some((runs, bytes)) = layout::runs(from.layout, to.layout, to.size())
        && batch::copy_runs(from.buffer, to.buffer, &runs, bytes)?
    {
        return Ok(());
    }
    Kernel::new("copy", include_str!("copy.wgsl"), to.buffer).read("a", from)?.to(to)
}
