//! Scratch buffers for kernels: slices of pool memory, or a few words on the stack.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;

use inlay_core::{Error, Result};

use super::owner::Pooled;

/// Types for which every bit pattern is a valid value.
pub trait Plain: Copy + Send + Sync + 'static + private::Sealed {}

mod private {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($t:ty),*) => { $(impl private::Sealed for $t {} impl Plain for $t {})* };
}
plain!(u8, u16, u32, u64, usize, i8, i16, i32, i64, i128, u128, f32, f64);
plain!(num_complex::Complex<f32>, num_complex::Complex<f64>);

/// A slice of values in a block of the pool. The block returns to the pool on drop.
pub struct Scratch<T: Plain> {
    block: Pooled,
    len: usize,
    values: PhantomData<T>,
}

impl<T: Plain> Scratch<T> {
    /// Allocates `len` values. They are initialized, but unspecified: the block keeps its old
    /// bytes.
    pub fn new(len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>());
        let bytes = bytes.ok_or(Error::OutOfMemory { bytes: usize::MAX })?;
        Ok(Scratch { block: Pooled::new(bytes)?, len, values: PhantomData })
    }

    /// Allocates `len` values and sets each to `value`.
    pub fn filled(len: usize, value: T) -> Result<Self> {
        let mut scratch = Scratch::new(len)?;
        scratch.fill(value);
        Ok(scratch)
    }
}

impl<T: Plain> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` has allocated a block for `len` values. Blocks are initialized and aligned
        // to 64 bytes, and every bit pattern is a `T`.
        unsafe { slice::from_raw_parts(self.block.ptr().as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; `self` owns the block and is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.block.ptr().as_ptr().cast(), self.len) }
    }
}

/// The bytes that a [`Space`] has on the stack: room for the bits of 512 elements, or for 8
/// positions.
const IN_PLACE: usize = 64;

/// A [`Scratch`], or a few words on the stack if they are enough, so that a tiny call needs no
/// allocation. Each dereference takes a branch, so callers should take the slice once.
pub struct Space<T: Plain>(Storage<T>);

enum Storage<T: Plain> {
    Stack([u128; IN_PLACE / size_of::<u128>()], usize),
    Pool(Scratch<T>),
}

impl<T: Plain> Space<T> {
    /// Makes room for `len` values. They are initialized, but unspecified.
    #[inline]
    pub fn new(len: usize) -> Result<Self> {
        const { assert!(align_of::<T>() <= align_of::<u128>()) };
        if len <= IN_PLACE / size_of::<T>() {
            return Ok(Space(Storage::Stack([0; IN_PLACE / size_of::<u128>()], len)));
        }
        Scratch::new(len).map(|scratch| Space(Storage::Pool(scratch)))
    }
}

impl<T: Plain> Deref for Space<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            // SAFETY: `new` has checked that `len` values fit and are aligned; every bit pattern is
            // a `T`.
            Storage::Stack(words, len) => unsafe {
                slice::from_raw_parts(words.as_ptr().cast(), *len)
            },
            Storage::Pool(scratch) => scratch,
        }
    }
}

impl<T: Plain> DerefMut for Space<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            // SAFETY: as above, and the words are borrowed exclusively.
            Storage::Stack(words, len) => unsafe {
                slice::from_raw_parts_mut(words.as_mut_ptr().cast(), *len)
            },
            Storage::Pool(scratch) => scratch,
        }
    }
}
