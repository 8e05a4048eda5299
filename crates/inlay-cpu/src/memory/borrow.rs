//! Borrows: slices of a buffer for code of users, which must not run under the lock.
//!
//! Code of a user may use the same buffer again, or another buffer. Under the lock this could wait
//! forever: for a writer that waits for the lock itself, or for a call that holds the lock of the
//! other buffer and waits for this one. So a borrow is a count beside the lock. Readers ignore it.
//! A writer waits until the count is 0, and holds no lock meanwhile. A thread that has a borrow
//! itself does not wait but fails. So no thread waits for a borrow while another one waits for it.

use std::cell::Cell;
use std::marker::PhantomData;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use inlay_core::{DType, Error, Layout, Result};

use super::Buffer;
use crate::Element;

/// The number of borrows of a buffer.
pub(super) struct Borrows(AtomicU32);

impl Borrows {
    pub(super) const fn new() -> Self {
        Borrows(AtomicU32::new(0))
    }
}

/// The number of writers that wait for a borrow to end, and the signal that one has ended.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static ENDED: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

thread_local! {
    /// The number of borrows that this thread has.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// A slice of the elements of a buffer. While it exists, nobody can write the buffer.
pub struct Borrow<'a> {
    buffer: &'a Buffer,
    /// The bytes of the elements, which are contiguous.
    bytes: &'a [u8],
    dtype: DType,
    /// The count of this thread includes the borrow, so it must stay on this thread.
    thread: PhantomData<*const ()>,
}

impl Buffer {
    /// Borrows the elements of `layout`. Returns `None` if they can't be a slice: they are not
    /// contiguous or outside of the buffer, belong to another library, which may write them at any
    /// time, or are bools whose bytes are neither 0 nor 1.
    pub fn borrow(&self, layout: &Layout, dtype: DType) -> Option<Borrow<'_>> {
        if self.is_foreign() || !layout.is_contiguous(dtype.size()) {
            return None;
        }
        let range = layout.extent(dtype.size()).filter(|range| range.end <= self.len())?;
        let len = if layout.numel() == 0 { 0 } else { range.len() };
        // Counted under the lock, so that a writer sees the count before it writes.
        let guard = self.read();
        let count = &self.borrows().0;
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_add(1)).ok()?;
        OWN.set(OWN.get() + 1);
        drop(guard);
        // SAFETY: the range was just checked against the buffer, whose bytes are initialized. Until
        // the count is lowered again, `WriteGuard::dst` fails, so nobody writes them.
        let bytes = unsafe { slice::from_raw_parts(self.as_ptr().add(range.start), len) };
        let borrow = Borrow { buffer: self, bytes, dtype, thread: PhantomData };
        let valid = dtype != DType::Bool || bytes.iter().fold(0, |all, byte| all | byte) <= 1;
        valid.then_some(borrow)
    }

    /// Returns whether a [`Borrow`] exists. The answer is exact under the lock for writing.
    #[inline]
    pub fn is_borrowed(&self) -> bool {
        self.borrows().0.load(Ordering::Acquire) > 0
    }

    /// Waits until no [`Borrow`] exists. The caller must hold no lock.
    ///
    /// # Errors
    /// This thread has a borrow of any buffer, so it could wait for itself.
    #[cold]
    pub fn wait_until_free(&self, op: &'static str, arg: &'static str) -> Result<()> {
        self.expect_free(op, arg)?;
        let (lock, ended) = &ENDED;
        // Counted before the check, so that a borrow that ends after the check gives the signal.
        WAITING.fetch_add(1, Ordering::SeqCst);
        let mut guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        while self.borrows().0.load(Ordering::SeqCst) > 0 {
            guard = ended.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        WAITING.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    /// Fails if a [`Borrow`] exists that this thread may not wait for, because it has a borrow
    /// itself.
    #[inline]
    pub fn expect_free(&self, op: &'static str, arg: &'static str) -> Result<()> {
        match self.is_borrowed() && OWN.get() > 0 {
            true => Err(Error::Borrowed { op, arg }),
            false => Ok(()),
        }
    }
}

impl Borrow<'_> {
    /// Returns the bytes of the elements, in the byte order of the machine.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Returns the elements, or `None` if they have another type or are not aligned.
    pub fn values<T: Element>(&self) -> Option<&[T]> {
        const { assert!(size_of::<T>() == size_of::<T::Stored>(), "a value is stored as it is") };
        // Without elements the address may not be aligned.
        if self.bytes.is_empty() && self.dtype == T::DTYPE {
            return Some(&[]);
        }
        let start = self.bytes.as_ptr().cast::<T>();
        let fits = self.dtype == T::DTYPE && start.is_aligned();
        // SAFETY: the bytes are elements of this type, and aligned. Every bit pattern is a value,
        // except for bools, which `Buffer::borrow` has checked.
        fits.then(|| unsafe { slice::from_raw_parts(start, self.bytes.len() / size_of::<T>()) })
    }
}

impl Drop for Borrow<'_> {
    fn drop(&mut self) {
        OWN.set(OWN.get() - 1);
        let before = self.buffer.borrows().0.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && WAITING.load(Ordering::SeqCst) > 0 {
            // Under the mutex, because a writer that has seen the count is not waiting yet.
            drop(ENDED.0.lock().unwrap_or_else(PoisonError::into_inner));
            ENDED.1.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

    fn layout(len: usize, size: usize) -> Layout {
        Layout::contiguous("test", &[len], size).expect("small")
    }

    #[test]
    fn a_borrowed_buffer_is_not_written() {
        let buffer = Buffer::from_vec(vec![1u16, 2, 3]);
        let three = layout(3, 2);
        let borrow = buffer.borrow(&three, DType::U16).expect("contiguous");
        assert_eq!(borrow.values::<u16>(), Some(&[1, 2, 3][..]));
        assert_eq!(borrow.values::<i16>(), None);
        assert!(buffer.write().dst(&three, DType::U16).is_err());
        assert!(buffer.wait_until_free("test", "x").is_err());
        drop(borrow);
        assert!(buffer.wait_until_free("test", "x").is_ok());
        assert!(buffer.write().dst(&three, DType::U16).is_ok());
    }

    #[test]
    fn a_borrow_stays_inside_of_the_buffer() {
        let buffer = Buffer::new(8).expect("small");
        assert!(buffer.borrow(&layout(9, 1), DType::U8).is_none());
        assert!(buffer.borrow(&layout(2, 8), DType::F64).is_none());
        let repeated = layout(1, 1).broadcast_to(&[8]).expect("broadcasts");
        assert!(buffer.borrow(&repeated, DType::U8).is_none());
        let none = Layout::contiguous("test", &[0, usize::MAX], 8).expect("empty");
        let none = buffer.borrow(&none, DType::F64).expect("empty");
        assert_eq!(none.values::<f64>(), Some(&[][..]));
        assert!(!buffer.is_borrowed() || none.bytes().is_empty());
    }

    #[test]
    fn bools_of_other_bytes_are_not_borrowed() {
        let buffer = Buffer::from_vec(vec![0u8, 1, 2]);
        assert!(buffer.borrow(&layout(3, 1), DType::Bool).is_none());
        assert!(!buffer.is_borrowed());
        assert!(buffer.borrow(&layout(2, 1), DType::Bool).is_some());
    }

    #[test]
    fn misaligned_elements_are_not_values() {
        let buffer = Buffer::new(64).expect("small");
        let odd = Layout::over(&[2], &[4], 1);
        let borrow = buffer.borrow(&odd, DType::F32).expect("contiguous");
        assert_eq!((borrow.bytes().len(), borrow.values::<f32>()), (8, None));
    }

    #[test]
    fn a_writer_of_another_thread_waits_for_the_borrow() {
        let buffer = Buffer::from_vec(vec![7u8; 4]);
        let four = layout(4, 1);
        std::thread::scope(|scope| {
            let borrow = buffer.borrow(&four, DType::U8).expect("contiguous");
            let writer = scope.spawn(|| {
                buffer.wait_until_free("test", "x").expect("this thread has no borrow");
                let mut guard = buffer.write();
                kernels::store(guard.dst(&four, DType::U8).expect("free"), &[9u8; 4]);
            });
            while WAITING.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(borrow.bytes(), [7; 4]);
            drop(borrow);
            writer.join().expect("no panic");
        });
        assert_eq!(buffer.borrow(&four, DType::U8).expect("contiguous").bytes(), [9; 4]);
    }
}
