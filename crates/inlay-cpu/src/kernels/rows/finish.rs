//! Loops that are called after the entries were written: they merge partial results, and divide sums to
//! get means.

use std::hint::select_unpredictable;
use std::marker::PhantomData;

use inlay_core::Combine;

use super::direct::{Direct, Task};
use super::notes::{SPILLED, counts};
use crate::arch::{self, Loop, Simd};
use crate::kernels::reducer::Reducer;

/// Merges partial results, which are contiguous rows of `len` elements each, with as many places.
/// `noted` has a bit for each place that has a partial result. `named` has a bit for each place whose
/// value takes part, which is set for the others with a partial result; all take part if it is empty.
///
/// # Safety
/// The places can be written, and the partial results can be read. They don't overlap, and no other
/// thread has the places. There is a bit for each place.
pub(super) unsafe fn merge<T: Copy, R: Reducer<T>>(
    rows: (*mut u8, *const u8),
    sizes: (usize, usize),
    noted: &[u32],
    named: &mut [u32],
) {
    // SAFETY: the caller's promise.
    unsafe { arch::dispatch(MergeRows::<T, R> { rows, sizes, noted, named, types: PhantomData }) }
}

/// [`merge`] as a loop that is compiled per level.
struct MergeRows<'a, T, R> {
    rows: (*mut u8, *const u8),
    sizes: (usize, usize),
    noted: &'a [u32],
    named: &'a mut [u32],
    types: PhantomData<(T, R)>,
}

impl<T: Copy, R: Reducer<T>> Loop for MergeRows<'_, T, R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self, _simd: S) {
        let MergeRows { rows: (to, from), sizes: (places, len), noted, named, .. } = self;
        let (to, from) = (to.cast::<T>(), from.cast::<T>());
        // SAFETY: the caller's promise.
        unsafe {
            for (word, first) in (0..places).step_by(u32::BITS as usize).enumerate() {
                let count = (places - first).min(u32::BITS as usize);
                let all = u32::MAX >> (u32::BITS as usize - count);
                let noted = noted[word] & all;
                let mut takes_part = u32::MAX;
                if let Some(named) = named.get_mut(word) {
                    takes_part = *named;
                    *named |= noted;
                }
                // Most words name all of their places, whose rows are merged together.
                if noted & takes_part == all {
                    merge_run::<T, R>(to.add(first * len), from.add(first * len), count * len);
                    continue;
                }
                let mut rest = noted;
                while rest != 0 {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    let at = (first + bit as usize) * len;
                    if takes_part >> bit & 1 != 0 {
                        merge_run::<T, R>(to.add(at), from.add(at), len);
                    } else {
                        std::ptr::copy_nonoverlapping(
                            from.add(at).cast::<u8>(),
                            to.add(at).cast::<u8>(),
                            len * size_of::<T>(),
                        );
                    }
                }
            }
        }
    }
}

/// Merges contiguous values.
///
/// # Safety
/// As for [`merge`].
#[inline(always)]
unsafe fn merge_run<T: Copy, R: Reducer<T>>(to: *mut T, from: *const T, len: usize) {
    // As in `write::join_near`, a masked store would be slow.
    let out = arch::hidden(to.cast::<u8>()).cast::<T>();
    for k in 0..len {
        // SAFETY: the caller's promise.
        unsafe {
            let merged = R::merge(to.add(k).read_unaligned(), from.add(k).read_unaligned());
            out.add(k).write_unaligned(merged);
        }
    }
}

/// Divides the sums of a range by their counts.
///
/// # Safety
/// The range lies inside of the call's destination, `words` are its notes, and no other thread has its
/// places.
pub(super) unsafe fn divide<T: Copy, R: Reducer<T>>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    words: &mut [u32],
) {
    let (counts, aside) = counts(words, task.own.len());
    let wide = |count: &u8| u32::from(*count);
    let mut start = 0;
    // SAFETY: the caller's promise.
    unsafe {
        for same in aside.chunk_by(|a, b| a == b) {
            let place = same[0] as usize;
            divide_from::<T, R>(direct, task, start, counts[start..place].iter().map(wide));
            let count = wide(&counts[place]) + (same.len() * SPILLED) as u32;
            divide_from::<T, R>(direct, task, place, std::iter::once(count));
            start = place + 1;
        }
        divide_from::<T, R>(direct, task, start, counts[start..].iter().map(wide));
    }
}

/// [`divide`] for consecutive places, the first of which is `first`, with their counts.
///
/// # Safety
/// The range lies inside of the call's destination, `words` are its notes, and no other thread has its
/// places.
#[inline(always)]
unsafe fn divide_from<T: Copy, R: Reducer<T>>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    first: usize,
    counts: impl Iterator<Item = u32>,
) {
    let include_self = matches!(direct.call.combine, Combine::Reduce { include_self: true, .. });
    let alone = u32::from(include_self);
    let run = task.run;
    let size = size_of::<T>() as isize;
    // SAFETY: the caller's promise.
    unsafe {
        let to = direct.origins(task).0.offset(first as isize * direct.steps[0]);
        let mean = |sum: T, count: u32| R::finish(R::widen(sum), count as usize);
        let one = |to: *mut T, count: u32| to.write_unaligned(mean(to.read_unaligned(), count));
        // Contiguous elements have separate loops, which the compiler vectorizes. Without them,
        // means of 64 x 5000 rows of 16 `f32` take 1.3 times as long.
        if run.len == 1 && direct.steps[0] == size {
            for (place, count) in counts.enumerate() {
                let to = to.cast::<T>().add(place);
                let sum = to.read_unaligned();
                let kept = count <= alone;
                to.write_unaligned(select_unpredictable(kept, sum, mean(sum, count.max(1))));
            }
            return;
        }
        for (place, count) in counts.enumerate() {
            if count <= alone {
                continue;
            }
            let to = to.offset(place as isize * direct.steps[0]);
            if run.strides[0] == size {
                (0..run.len).for_each(|k| one(to.cast::<T>().add(k), count));
            } else {
                (0..run.len as isize)
                    .for_each(|k| one(to.offset(k * run.strides[0]).cast(), count));
            }
        }
    }
}
