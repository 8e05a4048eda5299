//! An index, read once: checked, counted from the front, and kept where nobody else can write.
//!
//! Another thread may change a foreign index array at any time. Kernels use only this copy, so
//! that what was checked is what is used.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{DType, Error, Layout, Result};

use crate::Src;
use crate::memory::Space;
use crate::number::{Number, dispatch};
use crate::walk::{Run, Walk};

/// Positions on an axis, in the index's shape.
///
/// They are kept as i64, which most indices are: a kernel reads a private copy and an index as it
/// lies in the same way.
pub struct Positions {
    values: Space<i64>,
    layout: Layout,
}

/// An integer as an index.
pub(super) trait IndexValue: Number {
    /// Its value; past i64 the largest, which is out of range as every larger one is.
    fn to_i64(self) -> i64;
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

/// Counted from the front: negative values count from the end. What is out of range stays so.
#[inline]
pub(super) fn from_front(value: i64, size: usize) -> i64 {
    value.wrapping_add((value >> 63) & size as i64)
}

/// Whether a value counted from the front is on an axis of `size`.
#[inline]
pub(super) fn is_inside(at: i64, size: usize) -> bool {
    (at as u64) < size as u64
}

impl Positions {
    /// Reads `index`, whose values count on `axis` of `size`. The error names the first value, in
    /// row-major order, that is out of range.
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
            None => Ok(Positions { values, layout }),
            Some((flat, value)) => {
                let position = unravel(flat, index.layout().shape());
                Err(Error::Index { op, arg, position, value, axis, size })
            }
        }
    }

    /// The positions in row-major order.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// Where they lie; other layouts over them may repeat but not leave them.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Their layout stretched to a shape that the index was stretched to before.
    pub(super) fn stretched(&self, shape: &[usize]) -> Layout {
        let layout = self.layout.broadcast_to(shape);
        layout.unwrap_or_else(|| unreachable!("the index itself was stretched so"))
    }
}

/// Entries of a small call: their positions have room on the stack.
pub(super) const ENTRIES: usize = 64;

/// The positions that a contiguous index names, if it is of 64 or 32 bits, there is room for it, and all
/// are in range. Each value is read once: somebody else may be writing it.
pub(super) fn read_few<'r>(
    index: Src<'_>,
    size: usize,
    room: &'r mut [usize; ENTRIES],
) -> Option<&'r [usize]> {
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
            // SAFETY: the index is contiguous and has as many entries as there is room for.
            let value = unsafe { index.origin().cast::<T>().add(i).read_unaligned() };
            let at = from_front(value.to_i64(), size);
            good &= is_inside(at, size);
            *place = at as usize;
        }
    }
    good
}

/// Whether every value of an i64 index counts on an axis of `size`.
pub(super) fn all_inside(index: Src<'_>, size: usize) -> bool {
    assert_eq!(index.dtype(), DType::I64, "an index that is read as it lies");
    let good = AtomicBool::new(true);
    let walk = Walk::in_memory_order([index.layout()]);
    walk.parallel(size_of::<i64>(), |run| {
        // SAFETY: the walk stays inside of the index.
        let outside = |k: usize, stride: isize| unsafe {
            let at = run.offsets[0] + k as isize * stride;
            let value = index.origin().offset(at).cast::<i64>().read_unaligned();
            u64::from(!is_inside(from_front(value, size), size))
        };
        let width = size_of::<i64>() as isize;
        // The loop that the compiler can turn into vectors has a constant step.
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

fn read<T: IndexValue>(to: &mut [i64], index: Src<'_>, size: usize) -> Option<(usize, i128)> {
    let bad = Mutex::new(None::<(usize, i128)>);
    let to = Shared(to.as_mut_ptr());
    let visit = |run: Run<1>| {
        // SAFETY: the walk stays inside of the index, and positions inside of the scratch, which
        // has one place an element; each run has its own places.
        let value = |k: usize| unsafe {
            let at = run.offsets[0] + k as isize * run.strides[0];
            index.origin().offset(at).cast::<T>().read_unaligned()
        };
        let mut outside = 0;
        for k in 0..run.len {
            let at = from_front(value(k).to_i64(), size);
            outside += usize::from(!is_inside(at, size));
            // SAFETY: as above.
            unsafe { to.get().add(run.position + k).write(at) };
        }
        if outside > 0 {
            let first = (0..run.len).find(|&k| {
                // SAFETY: as above; what was written there is read back.
                !is_inside(unsafe { to.get().add(run.position + k).read() }, size)
            });
            let k = first.unwrap_or(0);
            let found = (run.position + k, value(k).value());
            let mut bad = bad.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            *bad = Some(bad.map_or(found, |first| first.min(found)));
        }
    };
    match Run::of_few([index.layout()], [size_of::<T>()]) {
        Some(run) => visit(run),
        None => Walk::new([index.layout()]).parallel(size_of::<i64>() + size_of::<T>(), visit),
    }
    bad.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A pointer that several threads may use, each for its own places.
pub(super) struct Shared<T>(pub(super) *mut T);

impl<T> Shared<T> {
    pub(super) fn get(&self) -> *mut T {
        self.0
    }
}

// SAFETY: a pointer is a number; whoever writes through it says why that is right.
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
