//! Owners: the objects that keep the bytes of a buffer alive.

use std::any::Any;
use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

use inlay_core::Result;

use super::block::RawBlock;
use super::pool;
use crate::Element;

/// To whom the bytes of a buffer belong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// To the buffer.
    Own,
    /// To another library. The owner keeps them alive.
    Foreign,
    /// To another library. The user of the buffer keeps them alive.
    Lent,
}

/// An object that keeps the bytes of a buffer alive.
pub(super) trait Owner: Send + Sync + 'static {
    /// To whom the bytes belong.
    const KIND: Kind = Kind::Own;
}

/// A block that returns to the pool on drop.
pub(super) struct Pooled(ManuallyDrop<RawBlock>);

/// Bytes in the same allocation as the reference count. The bytes in use are initialized.
#[repr(align(16))]
pub(super) struct Inline<const N: usize>(UnsafeCell<[MaybeUninit<u8>; N]>);

/// The allocation of a vector, which is freed as that of a vector. The vector itself is not kept,
/// because it would claim to be the only way to its elements.
pub(super) struct FromVec<T> {
    ptr: NonNull<T>,
    capacity: usize,
}

/// Memory that belongs to another library.
pub(super) struct Foreign<O> {
    _keep: O,
}

/// Memory of another library that the user of the buffer keeps alive.
pub(super) struct Lent;

impl Owner for Pooled {}
impl<const N: usize> Owner for Inline<N> {}
impl<T: Element> Owner for FromVec<T> {}
impl<O: Any + Send + Sync> Owner for Foreign<O> {
    const KIND: Kind = Kind::Foreign;
}
impl Owner for Lent {
    const KIND: Kind = Kind::Lent;
}

// SAFETY: the bytes are accessed only under the lock of their buffer, or through the pointer of
// `Buffer::as_ptr`, whose users need `unsafe` and are responsible for races.
unsafe impl<const N: usize> Sync for Inline<N> {}
// SAFETY: this is the only owner of the allocation, and elements may be sent to other threads.
unsafe impl<T: Element> Send for FromVec<T> {}
// SAFETY: as for `Inline`.
unsafe impl<T: Element> Sync for FromVec<T> {}

impl Pooled {
    pub(super) fn new(len: usize) -> Result<Self> {
        pool::take(len).map(|block| Pooled(ManuallyDrop::new(block)))
    }

    pub(super) fn ptr(&self) -> NonNull<u8> {
        self.0.ptr()
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // SAFETY: the block is not taken anywhere else, and `drop` runs once.
        pool::give(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

impl<const N: usize> Inline<N> {
    pub(super) fn new() -> Self {
        Inline(UnsafeCell::new([const { MaybeUninit::uninit() }; N]))
    }

    /// Returns the address of the first of the `N` bytes.
    pub(super) fn start(&self) -> NonNull<u8> {
        NonNull::from(&self.0).cast()
    }
}

impl<T: Element> FromVec<T> {
    pub(super) fn new(values: Vec<T>) -> Self {
        let mut values = ManuallyDrop::new(values);
        let capacity = values.capacity();
        // The pointer of a vector is not null, even if nothing is allocated.
        let ptr = NonNull::new(values.as_mut_ptr()).unwrap_or(NonNull::dangling());
        FromVec { ptr, capacity }
    }

    pub(super) fn ptr(&self) -> NonNull<u8> {
        self.ptr.cast()
    }
}

impl<T> Drop for FromVec<T> {
    fn drop(&mut self) {
        // SAFETY: both are from a vector that was forgotten. Elements are `Copy`, so none must be
        // dropped.
        drop(unsafe { Vec::from_raw_parts(self.ptr.as_ptr(), 0, self.capacity) });
    }
}

impl<O: Any + Send + Sync> Foreign<O> {
    pub(super) fn new(owner: O) -> Self {
        Foreign { _keep: owner }
    }
}
