//! Workspace of a kernel: a slice from the pool.

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
plain!(u8, u16, u32, u64, usize, i64, i128, u128, f32, f64);
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
