//! Copies between views and slices of Rust values.

use inlay_core::{Error, Result};

use crate::walk::Walk;
use crate::{Dst, Element, Src};

/// Writes `values` in row-major order to `dst`.
///
/// # Panics
/// When `dst` has another dtype or number of elements.
pub fn store<T: Element>(dst: Dst<'_>, values: &[T]) {
    let dst = dst.into_target();
    let walk = Walk::new([dst.layout()]);
    assert!(dst.dtype() == T::DTYPE && walk.len() == values.len(), "one value an element");
    walk.parallel(size_of::<T>(), |run| {
        for (k, value) in values[run.position..run.position + run.len].iter().enumerate() {
            // SAFETY: the walk stays inside of `dst`, whose dtype was checked above. Threads have
            // different runs.
            unsafe {
                let to = dst.origin().offset(run.offsets[0] + k as isize * run.strides[0]);
                to.cast::<T::Stored>().write_unaligned(value.store());
            }
        }
    });
}

/// Returns all elements in row-major order.
///
/// # Panics
/// When the view's dtype is not that of `T`.
///
/// # Errors
/// No memory for the values.
pub fn load<T: Element>(src: Src<'_>) -> Result<Vec<T>> {
    assert_eq!(src.dtype(), T::DTYPE, "elements of this type");
    let walk = Walk::new([src.layout()]);
    let mut values = Vec::new();
    let bytes = walk.len().saturating_mul(size_of::<T>());
    values.try_reserve_exact(walk.len()).map_err(|_| Error::OutOfMemory { bytes })?;
    walk.runs(0..walk.len(), |run| {
        values.extend((0..run.len as isize).map(|k| {
            // SAFETY: the walk stays inside of `src`, whose dtype was checked above. Every bit
            // pattern is a valid `T::Stored`.
            let stored = unsafe {
                let at = src.origin().offset(run.offsets[0] + k * run.strides[0]);
                at.cast::<T::Stored>().read_unaligned()
            };
            T::load(stored)
        }));
    });
    Ok(values)
}
