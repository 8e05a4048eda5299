//! Chains: each row is made of its own and of an earlier one.

use inlay_core::{DType, Layout};

use super::positions::Positions;
use crate::number::{Number, dispatch};
use crate::walk::Walk;
use crate::{Dst, Src};

/// `dst[i] = a[i] + c[i] * dst[from[i]]` along `axis`, or just `a[i]` where `from[i]` is no entry.
///
/// Backwards, `from` names later entries and the last come first. `from` counts one past the axis
/// for "no entry".
pub fn scan_rows(
    dst: Dst<'_>,
    a: Src<'_>,
    c: Src<'_>,
    axis: usize,
    from: &Positions,
    backwards: bool,
) {
    dst.expect_apart(&a);
    dst.expect_apart(&c);
    let count = dst.layout().shape()[axis];
    let in_order = |(i, &from): (usize, &i64)| {
        let from = from as usize;
        from >= count || if backwards { from > i } else { from < i }
    };
    let shape = dst.layout().shape();
    assert!(a.layout().shape() == shape && c.layout().shape() == shape, "one shape");
    assert!(from.values().len() == count, "one entry a row");
    assert!(from.values().iter().enumerate().all(in_order), "a chain comes from what is done");
    dispatch!(dst.dtype(), T => scan::<T>(dst, a, c, axis, from.values(), backwards));
}

fn scan<T: Number>(
    dst: Dst<'_>,
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
                // SAFETY: the walk stays inside of the rows, `i` and `from[i]` inside of the axis,
                // and the lane `k` is this thread's alone.
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

/// For each entry of an index, the one before it (or after it, backwards) that names the same place,
/// or the number of entries if there is none; as `i64` into the contiguous vector `dst`.
pub fn neighbours(dst: Dst<'_>, index: &Positions, places: &mut [usize], backwards: bool) {
    let count = index.values().len();
    assert!(dst.dtype() == DType::I64 && dst.layout().numel() == count, "one i64 an entry");
    assert!(dst.layout().is_contiguous(size_of::<i64>()), "a contiguous destination");
    places.fill(count);
    for step in 0..count {
        let i = if backwards { count - 1 - step } else { step };
        let last = &mut places[index.values()[i] as usize];
        // SAFETY: the destination has as many elements as the index.
        unsafe { dst.origin().cast::<i64>().add(i).write_unaligned(*last as i64) };
        *last = i;
    }
}
