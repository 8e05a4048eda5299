//! Small scatters of contiguous rows. They have no preparation such as walks and scratch buffers,
//! which would take longer than the writes.

use inlay_core::Combine;

use super::{Index, RowScatter};
use crate::kernels::positions::{FEW_ENTRIES, read_few};
use crate::kernels::reducer::{Reducer, dispatch_reduce, joins_in_place};
use crate::number::dispatch_width;

/// A scatter is small if destination and updates have at most this many bytes each. (A whole call
/// of 4 rows into 8 x 8 `f32` takes 340 ns instead of 600. At 4 KiB both take the same time.)
const SMALL: usize = 2 << 10;

/// Does a small scatter. Returns false, and writes nothing, if it is not small or an entry is out
/// of range.
pub(super) fn scatter(call: &RowScatter<'_>, index: &Index<'_>) -> bool {
    let RowScatter { dst, base, axis, updates, combine, .. } = *call;
    let (shape, size) = (dst.layout().shape(), dst.dtype().size());
    let entries = index.values.layout().numel();
    let bytes = dst.layout().numel().saturating_mul(size);
    let suits = entries <= FEW_ENTRIES
        && bytes <= SMALL
        && updates.layout().numel().saturating_mul(size) <= SMALL
        && shape[..axis].iter().all(|&outer| outer == 1)
        && dst.layout().is_contiguous(size)
        && base.is_none_or(|base| base.layout().is_contiguous(size));
    // Updates must be contiguous, or one value that is broadcast to all elements, as in a fill.
    let fill =
        combine == Combine::Assign && updates.layout().strides().iter().all(|&step| step == 0);
    if !suits
        || !(fill || updates.layout().is_contiguous(size))
        || !joins_in_place(combine, dst.dtype())
    {
        return false;
    }
    let mut room = [0; FEW_ENTRIES];
    let Some(places) = read_few(index.values, shape[axis], &mut room) else { return false };
    let row: usize = shape[axis + 1..].iter().product();
    // Without elements the addresses may not be valid.
    if row == 0 {
        return true;
    }
    // SAFETY: all views are contiguous, except updates that are one broadcast value. So row `i`
    // begins after `i` rows. `read_few` has checked that places are below the number of rows.
    // `RowScatter::expect_sound` has checked that base and updates don't overlap the destination,
    // and have its element size, its shape and, if they are reduced, its dtype. Its caller has
    // checked that there is a row of updates for each entry.
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
/// `len` elements of the size of `W` can be written at `to`, and one can be read at `from`.
unsafe fn fill_row<W: Copy>(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let value = from.cast::<W>().read_unaligned();
        for k in 0..len {
            to.cast::<W>().add(k).write_unaligned(value);
        }
    }
}

/// Reduces the row at `from` into the row at `to`, element by element.
///
/// # Safety
/// Both rows have `len` elements of type `T`, and they don't overlap.
unsafe fn merge<T: Copy, R: Reducer<T>>(to: *mut u8, from: *const u8, len: usize) {
    let (to, from) = (to.cast::<T>(), from.cast::<T>());
    for k in 0..len {
        // SAFETY: the caller's promise.
        unsafe {
            let joined = R::merge(to.add(k).read_unaligned(), from.add(k).read_unaligned());
            to.add(k).write_unaligned(joined);
        }
    }
}
