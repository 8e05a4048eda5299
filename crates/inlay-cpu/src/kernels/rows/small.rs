//! Small scatters of rows that lie one after the other: nothing is prepared for them, since that
//! would take longer than to write them.

use inlay_core::Combine;

use super::{Call, Index};
use crate::kernels::positions::{ENTRIES, read_few};
use crate::kernels::reducer::{Reducer, dispatch_reduce, joins_in_place};
use crate::number::dispatch_width;

/// Bytes of destination and updates up to which a scatter is small. (8 x 8 floats, 4 rows: 340 ns
/// instead of 600 with all around it; at 4 KiB both ways take as long.)
const SMALL: usize = 2 << 10;

/// Writes a small scatter. False if it is not one, or if an entry is out of range: then nothing was
/// written.
pub(super) fn scatter(call: &Call<'_>, index: &Index<'_>) -> bool {
    let Call { dst, base, axis, updates, combine, .. } = *call;
    let (shape, size) = (dst.layout().shape(), dst.dtype().size());
    let entries = index.values.layout().numel();
    let bytes = dst.layout().numel().saturating_mul(size);
    let apart = |k: &usize| *k == axis || shape[*k] == updates.layout().shape()[*k];
    let suits = entries <= ENTRIES
        && updates.layout().rank() == shape.len()
        && (0..shape.len()).all(|k| apart(&k))
        && bytes <= SMALL
        && updates.layout().numel().saturating_mul(size) <= SMALL
        && shape[..axis].iter().all(|&outer| outer == 1)
        && dst.layout().is_contiguous(size)
        && base.is_none_or(|base| base.layout().is_contiguous(size));
    // One value for all, as a fill has it, or rows that lie one after the other.
    let fill =
        combine == Combine::Assign && updates.layout().strides().iter().all(|&step| step == 0);
    if !suits
        || !(fill || updates.layout().is_contiguous(size))
        || !joins_in_place(combine, dst.dtype())
    {
        return false;
    }
    let mut room = [0; ENTRIES];
    let Some(places) = read_few(index.values, shape[axis], &mut room) else { return false };
    let row: usize = shape[axis + 1..].iter().product();
    // Without elements there may be no memory to look at.
    if row == 0 {
        return true;
    }
    // SAFETY: what is not one value is contiguous, so that row `i` begins after `i` rows; places are
    // below the number of rows, and there is a row of updates for each entry. The views lie apart, as
    // the caller has seen.
    unsafe {
        if let Some(base) = base {
            dst.origin().copy_from_nonoverlapping(base.origin(), bytes);
        }
        for (i, &place) in places.iter().enumerate() {
            let to = dst.origin().add(place * row * size);
            let from = updates.origin().add(if fill { 0 } else { i * row * size });
            match combine {
                Combine::Assign if fill => {
                    dispatch_width!(size, W => fill_row::<W>(to, from, row));
                }
                Combine::Assign => to.copy_from_nonoverlapping(from, row * size),
                Combine::Reduce { reduce, .. } => {
                    dispatch_reduce!(reduce, dst.dtype(), (T, R) => merge::<T, R>(to, from, row));
                }
            }
        }
    }
    true
}

/// Writes one value to all elements of a row.
///
/// # Safety
/// The row has `len` elements of the width of `W`, and the value is one.
unsafe fn fill_row<W: Copy>(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: as the caller says.
    unsafe {
        let value = from.cast::<W>().read_unaligned();
        for k in 0..len {
            to.cast::<W>().add(k).write_unaligned(value);
        }
    }
}

/// Joins a row with another, element by element.
///
/// # Safety
/// Both have `len` elements of `T`, and lie apart.
unsafe fn merge<T: Copy, R: Reducer<T>>(to: *mut u8, from: *const u8, len: usize) {
    let (to, from) = (to.cast::<T>(), from.cast::<T>());
    for k in 0..len {
        // SAFETY: as the caller says.
        unsafe {
            let joined = R::merge(to.add(k).read_unaligned(), from.add(k).read_unaligned());
            to.add(k).write_unaligned(joined);
        }
    }
}
