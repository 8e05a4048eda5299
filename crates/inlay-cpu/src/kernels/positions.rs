//! A private copy of an index: read once, checked, and counted from the front.
//!
//! Another thread may change a foreign index array at any time. It can't change this copy, so the
//! values that were checked are the values that are used.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{DType, Error, Layout, Result};

use crate::Src;
use crate::memory::Space;
use crate::number::{Number, dispatch};
use crate::once::{read_once, settle};
use crate::walk::{Run, Walk};

/// Positions on an axis, in the shape of the index. All of them are less than [`Positions::size`].
///
/// They are stored as `i64`, the dtype of most indices. So one loop can read both this copy and a
/// user's index.
pub struct Positions {
    values: Space<i64>,
    layout: Layout,
    /// The axis size that the values were checked against.
    size: usize,
}

/// An integer type that an index may have.
pub(super) trait IndexValue: Number {
    /// Returns the value. A value above the range of `i64` becomes `i64::MAX`, which is out of
    /// range of every axis too.
    fn to_i64(self) -> i64;
    /// Returns the exact value, for error messages.
    fn value(self) -> i128;
}

macro_rules! index_value {
    ($($t:ty),*) => { $(
        impl IndexValue for $t {
            #[inline]
            fn to_i64(self) -> i64 { i64::try_from(self).unwrap_or(i64::MAX) }
            fn value(self) -> i128 { self as i128 }
        }
    )* };
}
index_value!(u8, i8, u16, i16, u32, i32, u64, i64);

/// Adds the axis size to a negative value, which counts from the end. A value that is out of range
/// stays out of range.
#[inline]
pub(super) fn from_front(value: i64, size: usize) -> i64 {
    value.wrapping_add((value >> 63) & size as i64)
}

/// Returns whether a value, counted from the front, is a position on an axis of `size`.
#[inline]
pub(super) fn is_inside(at: i64, size: usize) -> bool {
    (at as u64) < size as u64
}

/// Returns whether all values, counted from the front, are positions on an axis of `size`.
///
/// If a value is out of range, either it or its distance from the last position is negative. So the
/// loop only collects signs, without comparisons, and the compiler vectorizes it.
#[inline(always)]
fn all_within(values: &[i64], size: usize) -> bool {
    let last = (size as i64).wrapping_sub(1);
    values.iter().fold(0, |signs, &at| signs | at | last.wrapping_sub(at)) >= 0
}

impl Positions {
    /// Copies and checks `index`, whose values are positions on `axis` of `size`. The error names
    /// the first value, in row-major order, that is out of range.
    pub fn read(
        op: &'static str,
        arg: &'static str,
        index: Src<'_>,
        axis: usize,
        size: usize,
    ) -> Result<Self> {
        let layout = Layout::contiguous(op, index.layout().shape(), size_of::<i64>())?;
        let mut values = Space::<i64>::new(layout.numel())?;
        let bad = dispatch!(integer index.dtype(), T => read::<T>(&mut values, index, size),
        else return Err(Error::DType {
            op, arg, got: index.dtype(), expected: "an integer dtype",
        }));
        match bad {
            None => Ok(Positions { values, layout, size }),
            Some((flat, value)) => {
                let position = unravel(flat, index.layout().shape());
                Err(Error::Index { op, arg, position, value, axis, size })
            }
        }
    }

    /// Returns the positions in row-major order.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// Returns the layout of the positions: contiguous, in the shape of the index.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the size of the axis that the positions were checked against. All of them are less.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Panics unless all positions are on an axis of `size`.
    #[inline]
    pub(super) fn expect_within(&self, size: usize) {
        let within = self.size <= size || self.values.is_empty();
        assert!(within, "positions were checked for a larger axis");
    }

    /// Returns the layout broadcast to `shape`, to which the index itself was broadcast before.
    pub(super) fn stretched(&self, shape: &[usize]) -> Layout {
        let layout = self.layout.broadcast_to(shape);
        layout.unwrap_or_else(|| unreachable!("the index was broadcast to this shape"))
    }
}

/// The most entries of a small call. Their positions fit on the stack.
pub(super) const FEW_ENTRIES: usize = 64;

/// Reads the positions of a small index into `room`. Returns `None` if the index has too many
/// entries, is not a contiguous `i64` or `i32` array, or has a value that is out of range. Each
/// value is loaded once, because another thread may change it.
pub(super) fn read_few<'r>(
    index: Src<'_>,
    size: usize,
    room: &'r mut [usize; FEW_ENTRIES],
) -> Option<&'r mut [usize]> {
    let room = room.get_mut(..index.layout().numel())?;
    let good = match index.dtype() {
        DType::I64 => fill_few::<i64>(room, index, size),
        DType::I32 => fill_few::<i32>(room, index, size),
        _ => false,
    };
    good.then_some(room)
}

fn fill_few<T: IndexValue>(room: &mut [usize], index: Src<'_>, size: usize) -> bool {
    let mut good = index.layout().is_contiguous(size_of::<T>());
    if good {
        for (i, place) in room.iter_mut().enumerate() {
            // SAFETY: the index is contiguous, as just checked, and `read_few` has cut `room` to
            // its number of entries.
            let value = unsafe { read_once(index.origin().cast::<T>().add(i)) };
            let at = from_front(value.to_i64(), size);
            good &= is_inside(at, size);
            *place = at as usize;
        }
    }
    good
}

/// Returns whether every value of an `i64` index is a position on an axis of `size`.
///
/// Another thread may change the index afterwards, so a kernel that uses it must check each value
/// again.
pub(super) fn all_inside(index: Src<'_>, size: usize) -> bool {
    assert_eq!(index.dtype(), DType::I64, "only an i64 index is read without a copy");
    let good = AtomicBool::new(true);
    let walk = Walk::in_memory_order([index.layout()]);
    walk.parallel(size_of::<i64>(), |run| {
        // SAFETY: the walk stays inside of the index, whose bounds were checked when the view was
        // made.
        let outside = |k: usize, stride: isize| unsafe {
            let at = run.offsets[0] + k as isize * stride;
            let value = index.origin().offset(at).cast::<i64>().read_unaligned();
            u64::from(!is_inside(from_front(value, size), size))
        };
        let width = size_of::<i64>() as isize;
        // The compiler can vectorize only the loop with a constant stride.
        let bad = match run.strides[0] == width {
            true => (0..run.len).fold(0, |bad, k| bad | outside(k, width)),
            false => (0..run.len).fold(0, |bad, k| bad | outside(k, run.strides[0])),
        };
        if bad > 0 {
            good.store(false, Relaxed);
        }
    });
    good.into_inner()
}

/// The number of values that are copied before they are checked: 8 KiB, which stay in the
/// first-level cache.
const CHUNK: usize = 1024;

/// Copies an index to `to`, counted from the front. Returns the first value that is out of range,
/// after its number in row-major order.
fn read<T: IndexValue>(to: &mut [i64], index: Src<'_>, size: usize) -> Option<(usize, i128)> {
    assert_eq!(to.len(), index.layout().numel(), "room for every entry");
    let bad = Mutex::new(None::<(usize, i128)>);
    let to = Shared(to.as_mut_ptr());
    // Notes the first value of a chunk that is out of range. The chunk begins at the element
    // `start` of a run.
    let note = |run: &Run<1>, start: usize, copied: &[i64]| {
        let k = copied.iter().position(|&at| !is_inside(at, size)).unwrap_or(0);
        let by = run.offsets[0] + (start + k) as isize * run.strides[0];
        // SAFETY: the walk stays inside of the index, whose bounds were checked when the view was
        // made.
        let value = unsafe { index.origin().offset(by).cast::<T>().read_unaligned() };
        let found = (run.position + start + k, value.value());
        let mut bad = bad.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *bad = Some(bad.map_or(found, |first| first.min(found)));
    };
    let visit = |run: Run<1>| {
        let mut start = 0;
        while start < run.len {
            let len = (run.len - start).min(CHUNK);
            // SAFETY: the walk stays inside of the index, whose bounds were checked when the view
            // was made.
            let from = |k: usize| unsafe {
                let by = run.offsets[0] + (start + k) as isize * run.strides[0];
                index.origin().offset(by).cast::<T>()
            };
            // SAFETY: `to` has an initialized element for every entry, as asserted above, and
            // different runs have different entries.
            let copied =
                unsafe { std::slice::from_raw_parts_mut(to.get().add(run.position + start), len) };
            // SAFETY: as for `from`.
            let inside = unsafe {
                if len <= FEW_ENTRIES {
                    // Few values are loaded one by one, each once. A vectorized loop has more
                    // overhead.
                    let mut inside = true;
                    for (k, at) in copied.iter_mut().enumerate() {
                        *at = from_front(read_once(from(k)).to_i64(), size);
                        inside &= is_inside(*at, size);
                    }
                    inside
                } else {
                    for (k, at) in copied.iter_mut().enumerate() {
                        *at = from_front(from(k).read_unaligned().to_i64(), size);
                    }
                    // The copy is checked and not the index, which another thread may change.
                    settle();
                    all_within(copied, size)
                }
            };
            if !inside {
                note(&run, start, copied);
            }
            start += len;
        }
    };
    match Run::of_few([index.layout()], [size_of::<T>()]) {
        Some(run) => visit(run),
        None => Walk::new([index.layout()]).parallel(size_of::<i64>() + size_of::<T>(), visit),
    }
    bad.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A pointer that several threads may use, each for its own elements.
pub(super) struct Shared<T>(pub(super) *mut T);

impl<T> Shared<T> {
    pub(super) fn get(&self) -> *mut T {
        self.0
    }
}

// SAFETY: it is only an address. Code that accesses memory through it is `unsafe` and says why no
// other thread accesses the same element.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

fn unravel(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut position = vec![0; shape.len()];
    for (at, &dim) in position.iter_mut().zip(shape).rev() {
        *at = flat % dim;
        flat /= dim;
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_within_an_axis_if_each_is_inside() {
        let ends = [i64::MIN, i64::MIN + 1, -2, -1, 0, 1, 5, 6, 7, i64::MAX - 1, i64::MAX];
        for size in [0, 1, 6, 7, isize::MAX as usize] {
            for value in ends {
                assert_eq!(all_within(&[0, value][1..], size), is_inside(value, size), "{value}");
            }
        }
        assert!(all_within(&[], 0) && !all_within(&[3, 0, 7, 2], 7));
    }
}
