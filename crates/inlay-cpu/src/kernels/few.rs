//! Writes of a few contiguous rows or elements, one entry after the other. They have no preparation
//! such as walks and scratch buffers, which would take longer than the writes.

use inlay_core::{Combine, DType, Reduce};

use super::reducer::{Reducer, dispatch_reduce, is_in_place};
use crate::number::dispatch_width;

/// A call is small if each of its tensors has at most this many bytes. (A whole `scatter` of 4 rows
/// into 8 x 8 `f32` takes 340 ns instead of 600, `put_along_axis` of 32 entries 730 ns instead of
/// 940. At 4 KiB both ways take the same time.)
pub(super) const SMALL: usize = 2 << 10;

/// The most places whose values are counted. The counts of more places take longer to set to 0 than
/// a small call.
const COUNTED: usize = 512;

/// Up to this many places have an array of counts of their own, because setting [`COUNTED`] counts to
/// 0 takes 4 % of the sum of 4 rows.
const FEW: usize = 64;

/// Returns whether [`write`] supports the combination of values with `places` places.
#[inline]
pub(super) fn supports(combine: Combine, dtype: DType, places: usize) -> bool {
    match combine {
        Combine::Assign => true,
        Combine::Reduce { reduce, include_self } => {
            let counted = !include_self || reduce == Reduce::Mean;
            (places <= COUNTED || !counted) && is_in_place(reduce, dtype)
        }
    }
}

/// Combines each row at `from` with the row at `to` whose number `places` has for it, in order.
/// `from` is one value for all elements if `fill` is true. A row has `len` elements of `dtype`.
///
/// # Safety
/// The rows at `to` with the numbers of `places` can be read and written, and all rows at `from` can
/// be read. They don't overlap. The number of rows at `to` is one that [`supports`] was asked for.
#[inline]
pub(super) unsafe fn write(
    (to, from): (*mut u8, *const u8),
    places: &[usize],
    (len, dtype): (usize, DType),
    fill: bool,
    combine: Combine,
) {
    let size = dtype.size();
    match combine {
        Combine::Assign => dispatch_width!(size, W => {
            for (i, &place) in places.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe {
                    let to = to.cast::<W>().add(place * len);
                    match fill {
                        true => fill_row(to, from.cast::<W>().read_unaligned(), len),
                        false => copy_row(to, from.cast::<W>().add(i * len), len),
                    }
                }
            }
        }),
        Combine::Reduce { reduce, include_self } => {
            dispatch_reduce!(reduce, dtype, (T, R) => {
                // SAFETY: the caller's promise.
                unsafe {
                    match len {
                        // A constant length takes half of the instructions of a loop.
                        1 => reduce_rows::<T, R>((to, from), places, 1, include_self),
                        _ => reduce_rows::<T, R>((to, from), places, len, include_self),
                    }
                }
            });
        }
    }
}

/// Writes one value to all elements of a row.
///
/// # Safety
/// `len` elements can be written at `to`.
#[inline(always)]
unsafe fn fill_row<W: Copy>(to: *mut W, value: W, len: usize) {
    for k in 0..len {
        // SAFETY: the caller's promise.
        unsafe { to.add(k).write_unaligned(value) };
    }
}

/// Copies a row.
///
/// # Safety
/// `len` elements can be written at `to` and read at `from`. They don't overlap.
#[inline(always)]
unsafe fn copy_row<W: Copy>(to: *mut W, from: *const W, len: usize) {
    // SAFETY: the caller's promise; the number of bytes is that of the rows.
    unsafe {
        match len {
            1 => to.write_unaligned(from.read_unaligned()),
            _ => to.cast::<u8>().copy_from_nonoverlapping(from.cast(), len * size_of::<W>()),
        }
    }
}

/// The reductions of [`write`].
///
/// # Safety
/// As for [`write`].
#[inline(always)]
unsafe fn reduce_rows<T: Copy, R: Reducer<T>>(
    (to, from): (*mut u8, *const u8),
    places: &[usize],
    len: usize,
    include_self: bool,
) {
    let (to, from) = (to.cast::<T>(), from.cast::<T>());
    let row = |place: usize| to.wrapping_add(place * len);
    // SAFETY: the caller's promise.
    let merge = |i: usize, place: usize, first: bool| unsafe {
        for k in 0..len {
            let (to, value) = (row(place).add(k), from.add(i * len + k).read_unaligned());
            let joined = if first { R::alone(value) } else { R::merge(to.read_unaligned(), value) };
            to.write_unaligned(joined);
        }
    };
    if include_self && !R::COUNTS {
        return places.iter().enumerate().for_each(|(i, &place)| merge(i, place, false));
    }
    // The number of values of each place so far. A small index has fewer entries than a `u8` counts.
    let rows = places.iter().max().map_or(0, |last| last + 1);
    let (mut few, mut many);
    let counts: &mut [u8] = if rows <= FEW {
        few = [u8::from(include_self); FEW];
        &mut few
    } else {
        many = [u8::from(include_self); COUNTED];
        &mut many
    };
    for (i, &place) in places.iter().enumerate() {
        merge(i, place, counts[place] == 0);
        counts[place] += 1;
    }
    if !R::COUNTS {
        return;
    }
    for &place in places {
        // A place is finished at its first entry. A single value is its own mean.
        let count = std::mem::take(&mut counts[place]) as usize;
        for k in 0..if count > 1 { len } else { 0 } {
            // SAFETY: the caller's promise.
            unsafe {
                let to = row(place).add(k);
                to.write_unaligned(R::finish(R::widen(to.read_unaligned()), count));
            }
        }
    }
}
