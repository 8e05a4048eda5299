//! An index, read once: checked, counted from the front, and kept where nobody else can write.
//!
//! Another thread may change a foreign index array at any time. Kernels use only this copy, so
//! that what was checked is what is used.

use std::sync::Mutex;

use inlay_core::{Error, Layout, Result};

use crate::Src;
use crate::memory::Scratch;
use crate::number::{Number, dispatch};
use crate::walk::Walk;

/// Positions on an axis, in the index's shape.
pub struct Positions {
    values: Scratch<usize>,
    layout: Layout,
}

/// An integer as an index.
trait IndexValue: Number {
    /// The position on an axis of `size`, if it has one.
    fn position(self, size: usize) -> Option<usize>;
    fn value(self) -> i128;
}

macro_rules! index_value {
    ($($t:ty),*) => { $(
        impl IndexValue for $t {
            #[inline]
            fn position(self, size: usize) -> Option<usize> {
                // A u64 past i64 turns negative and, as sizes fit in an isize, stays out of range.
                let wide = self as i64;
                let from_end = i128::from(self) < 0;
                let at = if from_end { wide.wrapping_add(size as i64) } else { wide };
                ((at as u64) < size as u64).then_some(at as usize)
            }
            fn value(self) -> i128 { self as i128 }
        }
    )* };
}
index_value!(u8, i8, u16, i16, u32, i32, u64, i64);

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
        let layout = Layout::contiguous(op, index.layout().shape(), size_of::<usize>())?;
        let mut values = Scratch::<usize>::new(layout.numel())?;
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
    pub fn values(&self) -> &[usize] {
        &self.values
    }

    /// Where they lie; other layouts over them may repeat but not leave them.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

fn read<T: IndexValue>(to: &mut [usize], index: Src<'_>, size: usize) -> Option<(usize, i128)> {
    let bad = Mutex::new(None::<(usize, i128)>);
    let walk = Walk::new([index.layout()]);
    let to = Shared(to.as_mut_ptr());
    walk.parallel(size_of::<usize>() + size_of::<T>(), |run| {
        for k in 0..run.len {
            // SAFETY: the walk stays inside of the index, and positions inside of the scratch,
            // which has one place an element; each run has its own places.
            unsafe {
                let at = run.offsets[0] + k as isize * run.strides[0];
                let value = index.origin().offset(at).cast::<T>().read_unaligned();
                let position = value.position(size);
                to.get().add(run.position + k).write(position.unwrap_or(0));
                if position.is_none() {
                    let found = (run.position + k, value.value());
                    let mut bad = bad.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    *bad = Some(bad.map_or(found, |first| first.min(found)));
                    return;
                }
            }
        }
    });
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
