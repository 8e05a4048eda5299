//! Workspace of a kernel: a slice from the pool, or a few words in place.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;

use inlay_core::{Error, Result};

use super::buffer::Pooled;

/// Types for which every pattern of bits is a value.
pub trait Plain: Copy + Send + Sync + 'static + private::Sealed {}

mod private {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($t:ty),*) => { $(impl private::Sealed for $t {} impl Plain for $t {})* };
}
plain!(u8, u16, u32, u64, usize, i8, i16, i32, i64, i128, u128, f32, f64);
plain!(num_complex::Complex<f32>, num_complex::Complex<f64>);

/// `len` values of no particular value, given back to the pool when dropped.
pub struct Scratch<T: Plain> {
    block: Pooled,
    len: usize,
    values: PhantomData<T>,
}

impl<T: Plain> Scratch<T> {
    /// `len` values, whatever the block held before.
    pub fn new(len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>());
        let bytes = bytes.ok_or(Error::OutOfMemory { bytes: usize::MAX })?;
        Ok(Scratch { block: Pooled::new(bytes)?, len, values: PhantomData })
    }

    /// `len` times `value`.
    pub fn filled(len: usize, value: T) -> Result<Self> {
        let mut scratch = Scratch::new(len)?;
        scratch.fill(value);
        Ok(scratch)
    }
}

impl<T: Plain> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the block is initialized, holds `len` values, and is aligned to 64 bytes; any
        // bits are a T.
        unsafe { slice::from_raw_parts(self.block.ptr().as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is the only handle to the block.
        unsafe { slice::from_raw_parts_mut(self.block.ptr().as_ptr().cast(), self.len) }
    }
}

/// Bytes that a [`Space`] has in place: a mask of 512 elements, an index of 8.
const IN_PLACE: usize = 64;

/// A [`Scratch`] that is a few words in place where that is enough: a tiny call spares a trip to the
/// allocator. Finding the values takes a branch, so it is for those who ask for the slice once.
pub struct Space<T: Plain>(Place<T>);

enum Place<T: Plain> {
    Here([u128; IN_PLACE / size_of::<u128>()], usize),
    There(Scratch<T>),
}

impl<T: Plain> Space<T> {
    /// `len` values of no particular value.
    #[inline]
    pub fn new(len: usize) -> Result<Self> {
        const { assert!(align_of::<T>() <= align_of::<u128>()) };
        if len <= IN_PLACE / size_of::<T>() {
            return Ok(Space(Place::Here([0; IN_PLACE / size_of::<u128>()], len)));
        }
        Scratch::new(len).map(|scratch| Space(Place::There(scratch)))
    }
}

impl<T: Plain> Deref for Space<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            // SAFETY: `new` has seen that `len` values fit and are aligned; any bits are a T.
            Place::Here(words, len) => unsafe {
                slice::from_raw_parts(words.as_ptr().cast(), *len)
            },
            Place::There(scratch) => scratch,
        }
    }
}

impl<T: Plain> DerefMut for Space<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            // SAFETY: as above.
            Place::Here(words, len) => unsafe {
                slice::from_raw_parts_mut(words.as_mut_ptr().cast(), *len)
            },
            Place::There(scratch) => scratch,
        }
    }
}
