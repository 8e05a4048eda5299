//! Recurrences along an axis: each row is computed from its own value and from an earlier row.

use inlay_core::{DType, Layout};

use super::positions::Positions;
use crate::number::{Number, dispatch};
use crate::view::Target;
use crate::walk::Walk;
use crate::{Dst, Src};

/// `dst[i] = a[i] + c[i] * dst[from[i]]` along `axis`. If `from[i]` is the size of the axis, there
/// is no earlier row, and `dst[i] = a[i]`.
///
/// With `backwards`, `from` names later rows, and the last row is computed first.
///
/// # Panics
/// When the views differ in shape or dtype, a source overlaps `dst`, or `from` names a row that is
/// computed later.
pub fn scan_rows(
    dst: Dst<'_>,
    a: Src<'_>,
    c: Src<'_>,
    axis: usize,
    from: &Positions,
    backwards: bool,
) {
    let dst = dst.into_target();
    dst.expect_apart(&a);
    dst.expect_apart(&c);
    assert!(a.dtype() == dst.dtype() && c.dtype() == dst.dtype(), "one dtype");
    let count = dst.layout().shape()[axis];
    let in_order = |(i, &from): (usize, &i64)| {
        let from = from as usize;
        from >= count || if backwards { from > i } else { from < i }
    };
    let shape = dst.layout().shape();
    assert!(a.layout().shape() == shape && c.layout().shape() == shape, "one shape");
    assert!(from.values().len() == count, "one entry per row");
    assert!(from.values().iter().enumerate().all(in_order), "rows use rows that are done");
    dispatch!(wrapping dst.dtype(), T => scan::<T>(dst, a, c, axis, from.values(), backwards));
}

fn scan<T: Number>(
    dst: Target<'_>,
    a: Src<'_>,
    c: Src<'_>,
    axis: usize,
    from: &[i64],
    backwards: bool,
) {
    let row = |layout: &Layout| layout.without_axis(axis);
    let rows = Walk::in_memory_order([&row(dst.layout()), &row(a.layout()), &row(c.layout())]);
    let steps = [dst.layout(), a.layout(), c.layout()].map(|layout| layout.strides()[axis]);
    let count = from.len();
    let cost = count.saturating_mul(4 * size_of::<T>());
    rows.parallel(cost, |run| {
        for step in 0..count {
            let i = if backwards { count - 1 - step } else { step };
            for k in 0..run.len as isize {
                let at = |n: usize, i: usize| {
                    run.offsets[n] + k * run.strides[n] + i as isize * steps[n]
                };
                // SAFETY: `scan_rows` has checked that all views have dtype `T` and one shape, and
                // that no source overlaps `dst`. The walk stays inside of the rows, and `i` and
                // `from[i]` inside of the axis. No other thread has column `k` of this run.
                unsafe {
                    let read =
                        |origin: *const u8, by| origin.offset(by).cast::<T>().read_unaligned();
                    let own = read(a.origin(), at(1, i)).widen();
                    let value = if (from[i] as usize) < count {
                        let before =
                            read(dst.origin().cast_const(), at(0, from[i] as usize)).widen();
                        let factor = read(c.origin(), at(2, i)).widen();
                        T::acc_add(own, T::acc_mul(factor, before))
                    } else {
                        own
                    };
                    dst.origin().offset(at(0, i)).cast::<T>().write_unaligned(T::narrow(value));
                }
            }
        }
    });
}

/// Writes to `dst`, for each entry of an index, the number of the previous entry (with `backwards`,
/// of the next entry) that names the same place, or the number of entries if there is none. `dst`
/// is a contiguous vector of `i64`. `places` is a scratch buffer with an element for each place.
///
/// # Panics
/// When `dst` is not contiguous, is not of `i64`, or has another length than the index, or when an
/// entry names a place past `places`.
pub fn neighbours(dst: Dst<'_>, index: &Positions, places: &mut [usize], backwards: bool) {
    let dst = dst.into_target();
    let count = index.values().len();
    assert!(dst.dtype() == DType::I64 && dst.layout().numel() == count, "one i64 per entry");
    assert!(dst.layout().is_contiguous(size_of::<i64>()), "a contiguous destination");
    places.fill(count);
    for step in 0..count {
        let i = if backwards { count - 1 - step } else { step };
        let last = &mut places[index.values()[i] as usize];
        // SAFETY: the destination is contiguous, of `i64`, and has as many elements as the index,
        // as was checked above.
        unsafe { dst.origin().cast::<i64>().add(i).write_unaligned(*last as i64) };
        *last = i;
    }
}
