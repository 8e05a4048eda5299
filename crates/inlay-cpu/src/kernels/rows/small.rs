//! Scatters and gathers of a few contiguous rows; see [`few`].

use inlay_core::Combine;

use super::{Index, RowScatter};
use crate::Src;
use crate::kernels::few::{self, SMALL};
use crate::kernels::positions::{FEW_ENTRIES, read_few};
use crate::view::Target;

/// Does a small scatter. Returns false, and writes nothing, if it is not small or an entry is out
/// of range.
pub(super) fn scatter(call: &RowScatter<'_>, index: &Index<'_>) -> bool {
    let RowScatter { dst, base, axis, updates, combine, .. } = *call;
    let (shape, size) = (dst.layout().shape(), dst.dtype().size());
    let bytes = dst.layout().numel().saturating_mul(size);
    let suits = bytes <= SMALL
        && updates.layout().numel().saturating_mul(size) <= SMALL
        && shape[..axis].iter().all(|&outer| outer == 1)
        && dst.layout().is_contiguous(size)
        && base.is_none_or(|base| base.layout().is_contiguous(size));
    // Updates must be contiguous, or one value that is broadcast to all elements, as in a fill.
    let fill =
        combine == Combine::Assign && updates.layout().strides().iter().all(|&step| step == 0);
    if !suits
        || !(fill || updates.layout().is_contiguous(size))
        || !few::supports(combine, dst.dtype(), shape[axis])
    {
        return false;
    }
    let mut room = [0; FEW_ENTRIES];
    let Some(places) = read_few(index.values, shape[axis], &mut room) else { return false };
    let len: usize = shape[axis + 1..].iter().product();
    // Without elements the addresses may not be valid.
    if len == 0 {
        return true;
    }
    let (to, from) = (dst.origin(), updates.origin());
    // SAFETY: all views are contiguous, except updates that are one broadcast value. So row `i`
    // begins after `i` rows. `read_few` has checked that places are below the number of rows.
    // `RowScatter::expect_sound` has checked that base and updates don't overlap the destination,
    // and have its element size, its shape and, if they are reduced, its dtype. Its caller has
    // checked that there is a row of updates for each entry.
    unsafe {
        if let Some(base) = base {
            to.copy_from_nonoverlapping(base.origin(), bytes);
        }
        few::write((to, from), places, (len, dst.dtype()), fill, combine);
    }
    true
}

/// Does a small gather of rows of `src`. Returns false if it is not small or an entry is out of
/// range. The caller has checked that the views have one element size and don't overlap, and that
/// their shapes agree but for the axis, on which `dst` has a row for each entry.
pub(super) fn gather(dst: Target<'_>, src: Src<'_>, axis: usize, index: &Index<'_>) -> bool {
    let (shape, size) = (src.layout().shape(), src.dtype().size());
    let suits = dst.layout().numel().saturating_mul(size) <= SMALL
        && shape[..axis].iter().all(|&outer| outer == 1)
        && dst.layout().is_contiguous(size)
        && src.layout().is_contiguous(size);
    if !suits {
        return false;
    }
    let mut room = [0; FEW_ENTRIES];
    let Some(places) = read_few(index.values, shape[axis], &mut room) else { return false };
    let row = shape[axis + 1..].iter().product::<usize>() * size;
    // Without elements the addresses may not be valid.
    if row == 0 {
        return true;
    }
    for (i, &place) in places.iter().enumerate() {
        // SAFETY: both views are contiguous, so row `i` begins after `i` rows. `read_few` has checked
        // that places are below the number of rows, and the caller has checked the rest.
        unsafe {
            let from = src.origin().add(place * row);
            dst.origin().add(i * row).copy_from_nonoverlapping(from, row);
        }
    }
    true
}
