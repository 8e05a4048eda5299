//! Shared buffers: bytes that several tensors may view, behind a lock, so that safe code can
//! neither race nor read half a write.

use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use inlay_core::{DType, Error, Layout, Result};

use super::{block::Block, pool};
use crate::{Dst, Src};

/// A handle to shared bytes; clones share them.
#[derive(Clone)]
pub struct Buffer(Arc<Shared>);

struct Shared {
    ptr: NonNull<u8>,
    len: usize,
    writable: bool,
    lock: RwLock<()>,
    /// How often the bytes were written in place.
    version: AtomicU64,
    /// The version of the last write that a gradient goes through.
    recorded: AtomicU64,
    /// What keeps the bytes alive: dropped with the last handle.
    _owner: Owner,
}

// SAFETY: the bytes are reached through `lock` alone, but for `Buffer::as_ptr`, whose users
// answer for their own races; the owner is Send and Sync by its bound.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

enum Owner {
    Pool { _block: Pooled },
    Foreign { _keep: Box<dyn Any + Send + Sync> },
}

/// A block that goes back to the pool.
pub(super) struct Pooled(ManuallyDrop<Block>);

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
        // SAFETY: this is the only place that takes the block, and it runs once.
        pool::give(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

impl Buffer {
    /// `len` bytes of no particular value, aligned to 64.
    pub fn new(len: usize) -> Result<Self> {
        let block = Pooled::new(len)?;
        Ok(Buffer(Arc::new(Shared {
            ptr: block.ptr(),
            len,
            writable: true,
            lock: RwLock::new(()),
            version: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            _owner: Owner::Pool { _block: block },
        })))
    }

    /// Memory that belongs to `owner`, which is kept until the last handle is gone.
    ///
    /// # Safety
    /// The `len` bytes at `ptr` are initialized, and valid for reads, and for writes if
    /// `writable`, for as long as `owner` lives. Whoever else reaches them answers for races.
    pub unsafe fn foreign(
        ptr: NonNull<u8>,
        len: usize,
        writable: bool,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        let (lock, version, recorded) = (RwLock::new(()), AtomicU64::new(0), AtomicU64::new(0));
        let _owner = Owner::Foreign { _keep: owner };
        Buffer(Arc::new(Shared { ptr, len, writable, lock, version, recorded, _owner }))
    }

    /// The address of the first byte; what it points to lives as long as a handle does.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.ptr.as_ptr()
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Whether the bytes may be written.
    pub fn is_writable(&self) -> bool {
        self.0.writable
    }

    /// How often the bytes were written in place, as far as [`Buffer::count_write`] was told.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Counts a write in place, and whether a gradient goes through it.
    pub fn count_write(&self, recorded: bool) {
        let version = self.0.version.fetch_add(1, Ordering::AcqRel) + 1;
        if recorded {
            self.0.recorded.fetch_max(version, Ordering::AcqRel);
        }
    }

    /// The version of the last write that a gradient goes through, or 0.
    pub fn recorded_version(&self) -> u64 {
        self.0.recorded.load(Ordering::Acquire)
    }

    /// A number that differs between buffers that live at the same time.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether both are handles to the same buffer.
    pub fn same_as(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether two views, each a layout and its element size, lie in overlapping ranges of
    /// addresses.
    pub fn overlaps(
        &self,
        ours: (&Layout, usize),
        other: &Buffer,
        theirs: (&Layout, usize),
    ) -> bool {
        let span = |buffer: &Buffer, (layout, size): (&Layout, usize)| {
            let range = layout.extent(size)?;
            let base = buffer.as_ptr() as usize;
            Some((base + range.start, base + range.end))
        };
        match (span(self, ours), span(other, theirs)) {
            (Some((a, a_end)), Some((b, b_end))) => a < b_end && b < a_end,
            _ => true,
        }
    }

    /// Waits until nobody writes, and keeps writers out while the guard lives.
    pub fn read(&self) -> Read<'_> {
        let guard = self.0.lock.read().unwrap_or_else(PoisonError::into_inner);
        Read { buffer: self, _guard: guard }
    }

    /// Waits until nobody reads or writes, and keeps everyone out while the guard lives.
    pub fn write(&self) -> Write<'_> {
        let guard = self.0.lock.write().unwrap_or_else(PoisonError::into_inner);
        Write { buffer: self, _guard: guard }
    }

    fn check(&self, layout: &Layout, dtype: DType) -> Result<()> {
        match layout.extent(dtype.size()) {
            Some(range) if range.end <= self.0.len || range.is_empty() => Ok(()),
            _ => Err(Error::OutOfBounds { what: "a view", len: self.0.len }),
        }
    }

    /// The first element of a view, anywhere valid when the view has none.
    fn origin(&self, layout: &Layout) -> *mut u8 {
        self.as_ptr().wrapping_add(layout.offset())
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.0.len).finish_non_exhaustive()
    }
}

/// Shared access to a buffer's bytes.
pub struct Read<'a> {
    buffer: &'a Buffer,
    _guard: RwLockReadGuard<'a, ()>,
}

/// Sole access to a buffer's bytes.
pub struct Write<'a> {
    buffer: &'a Buffer,
    _guard: RwLockWriteGuard<'a, ()>,
}

impl Read<'_> {
    /// The bytes as elements in `layout`. Fails when they would lie outside of the buffer.
    pub fn src<'s>(&'s self, layout: &'s Layout, dtype: DType) -> Result<Src<'s>> {
        self.buffer.check(layout, dtype)?;
        // SAFETY: the bounds were just checked, and the guard keeps writers out for 's.
        Ok(unsafe { Src::new(self.buffer.origin(layout), layout, dtype) })
    }
}

impl Write<'_> {
    /// As [`Read::src`].
    pub fn src<'s>(&'s self, layout: &'s Layout, dtype: DType) -> Result<Src<'s>> {
        self.buffer.check(layout, dtype)?;
        // SAFETY: as for `Read`; a `Dst` of this guard that overlaps is the kernels' to refuse.
        Ok(unsafe { Src::new(self.buffer.origin(layout), layout, dtype) })
    }

    /// The bytes as elements to be written. Fails when they would lie outside of the buffer,
    /// overlap each other, or may not be written.
    pub fn dst<'s>(&'s self, layout: &'s Layout, dtype: DType) -> Result<Dst<'s>> {
        self.buffer.check(layout, dtype)?;
        if !self.buffer.is_writable() {
            return Err(Error::ReadOnly { op: "write", arg: "buffer" });
        }
        if layout.overlaps_itself(dtype.size()) {
            return Err(Error::SelfOverlap { op: "write", arg: "view" });
        }
        // SAFETY: bounds, permission and distinctness were just checked, and the guard keeps
        // everyone else out for 's.
        Ok(unsafe { Dst::new(self.buffer.origin(layout), layout, dtype) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_outside_of_the_buffer_are_refused() {
        let buffer = Buffer::new(16).expect("small");
        let layout = |n| Layout::contiguous("test", &[n], 4).expect("small");
        assert!(buffer.read().src(&layout(4), DType::F32).is_ok());
        assert!(buffer.read().src(&layout(5), DType::F32).is_err());
        assert!(buffer.read().src(&layout(4), DType::F64).is_err());
        let repeated = layout(1).broadcast_to(&[4]).expect("broadcasts");
        assert!(buffer.write().dst(&repeated, DType::F32).is_err());
    }

    #[test]
    fn blocks_come_back_to_the_pool() {
        let ptr = Buffer::new(3 << 20).expect("small").as_ptr();
        assert_eq!(ptr as usize % (2 << 20), 0);
        // Another test may empty the cache between the two, but hardly every time.
        let comes_back = |_| {
            let reused = pool::stats().reused;
            drop(Buffer::new(3 << 20).expect("small"));
            pool::stats().reused > reused
        };
        assert!((0..100).any(comes_back));
    }
}
