//! The copy between two views.

use inlay_core::Result;

use super::expect;
use crate::shader::{Kernel, wgsl_file};
use crate::{View, batch, layout};

/// Writes `to = from`. Both have one dtype and shape.
///
/// # Errors
/// The views don't fit, or the device is lost or refuses the call.
pub fn copy(to: View<'_>, from: View<'_>) -> Result<()> {
    expect::like("copy", "from", from, to)?;
    if let Some((runs, bytes)) = layout::runs(from.layout, to.layout, to.size()) {
        from.expect_inside()?;
        to.expect_destination("copy")?;
        if batch::copy_runs(from.buffer, to.buffer, &runs, bytes)? {
            return Ok(());
        }
    }
    Kernel::new("copy", wgsl_file!("copy.wgsl"), to.buffer).read("a", from)?.to(to)
}
