//! Loads of memory that another thread may change at any time, such as a NumPy array's. A value
//! that is checked and then used must be loaded once. The compiler may repeat a plain load, because
//! it assumes that no other thread writes. The functions here prevent that.

use std::sync::atomic::{Ordering, compiler_fence};

/// A `T` without alignment.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned<T: Copy>(T);

/// Loads a value exactly once, at any alignment, so that a check and the use see the same value.
///
/// The load is volatile, so the compiler neither repeats it nor merges it into a vector load. A
/// loop that should be vectorized copies the values first, calls [`settle`], and checks the copy.
///
/// # Safety
/// `from` can be read, and every bit pattern is a `T`.
#[inline(always)]
pub(crate) unsafe fn read_once<T: Copy>(from: *const T) -> T {
    // SAFETY: the caller's promise; the packed struct has an alignment of 1.
    unsafe { from.cast::<Unaligned<T>>().read_volatile().0 }
}

/// Ends a copy of foreign values to private memory. It is a compiler fence: the compiler may not
/// repeat an earlier load after it, so later reads of the copy see the values that were copied. It
/// compiles to no instruction.
#[inline(always)]
pub(crate) fn settle() {
    compiler_fence(Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_at_every_alignment() {
        let bytes: Vec<u8> = (0..40).map(|k| k * 5 + 1).collect();
        for at in 0..32 {
            let expected = std::array::from_fn(|k| bytes[at + k]);
            // SAFETY: the eight bytes at `at` lie inside of the vector.
            let got = unsafe { read_once(bytes.as_ptr().add(at).cast::<i64>()) };
            assert_eq!(got, i64::from_ne_bytes(expected));
        }
    }
}
