//! Shared buffers: bytes that several tensors may view, behind a lock, so that safe code can
//! neither race nor read half a write.

use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use inlay_core::{DType, Error, Layout, Result, Versions};

use super::block::{Block, PADDING, head_of};
use super::pool;
use crate::view::Span;
use crate::{Dst, Element, Src};

/// A handle to shared bytes; clones share them.
#[derive(Clone)]
pub struct Buffer(Arc<Shared<dyn Owner>>);

/// What is known of the bytes, and in the same allocation what keeps them alive.
struct Shared<O: ?Sized> {
    /// Set once, before anybody else has a handle.
    ptr: AtomicPtr<u8>,
    len: usize,
    writable: bool,
    lock: RwLock<()>,
    /// How often the bytes were written in place.
    versions: Versions,
    /// Dropped with the last handle.
    owner: O,
}

/// What keeps bytes alive.
trait Owner: Send + Sync {
    /// Whether the bytes belong to somebody else.
    fn is_foreign(&self) -> bool {
        false
    }
}

/// A block that goes back to the pool.
pub(super) struct Pooled(ManuallyDrop<Block>);

/// Bytes that lie in the handle's own allocation, aligned as that is; those in use are initialized.
#[repr(align(16))]
struct Inline<const N: usize>(UnsafeCell<[MaybeUninit<u8>; N]>);

/// Memory of others.
struct Foreign<O> {
    _keep: O,
}

impl Owner for Pooled {}
impl<const N: usize> Owner for Inline<N> {}
impl<O: Any + Send + Sync> Owner for Foreign<O> {
    fn is_foreign(&self) -> bool {
        true
    }
}

// SAFETY: the bytes are reached through the lock of their buffer alone, but for `Buffer::as_ptr`,
// whose users answer for their own races.
unsafe impl<const N: usize> Sync for Inline<N> {}

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

impl<O: Owner + 'static> Shared<O> {
    // Inlined, so that it is made where it stays.
    #[inline(always)]
    fn new(ptr: NonNull<u8>, len: usize, writable: bool, owner: O) -> Arc<Self> {
        Arc::new(Shared {
            ptr: AtomicPtr::new(ptr.as_ptr()),
            len,
            writable,
            lock: RwLock::new(()),
            versions: Versions::new(),
            owner,
        })
    }
}

impl Buffer {
    /// `len` bytes of no particular value, aligned to 64.
    pub fn new(len: usize) -> Result<Self> {
        // Two sizes, so that little is wasted: an 8 x 8 tensor of floats fits in the first.
        const TINY: usize = 256;
        const SMALL: usize = super::block::SMALL;
        if len <= TINY {
            return Ok(Buffer::inline::<{ TINY + PADDING }>(len));
        }
        if len <= SMALL {
            return Ok(Buffer::inline::<{ SMALL + PADDING }>(len));
        }
        let block = Pooled::new(len)?;
        Ok(Buffer(Shared::new(block.ptr(), len, true, block)))
    }

    /// `len` bytes beside the count of handles: one allocation less, which a tiny call notices.
    fn inline<const N: usize>(len: usize) -> Self {
        let nothing = Inline(UnsafeCell::new([const { MaybeUninit::uninit() }; N]));
        let shared = Shared::new(NonNull::dangling(), len, true, nothing);
        let start = shared.owner.0.get().cast::<u8>();
        // The array has room for the way to the next aligned address, beside the `len` bytes.
        let ptr = start.wrapping_add(head_of(start as usize));
        // SAFETY: for that reason they lie inside, and nobody else has a handle yet.
        unsafe { ptr.write_bytes(0, len) };
        shared.ptr.store(ptr, Ordering::Relaxed);
        Buffer(shared)
    }

    /// The bytes of one element, written before anybody else has a handle: without a lock.
    pub fn single<T: Element>(value: T) -> Result<Self> {
        let buffer = Buffer::new(size_of::<T::Stored>())?;
        // SAFETY: so many bytes begin there, aligned to more than a number needs.
        unsafe { buffer.as_ptr().cast::<T::Stored>().write(value.store()) };
        Ok(buffer)
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
        owner: impl Any + Send + Sync,
    ) -> Self {
        Buffer(Shared::new(ptr, len, writable, Foreign { _keep: owner }))
    }

    /// Whether the bytes belong to somebody else.
    pub fn is_foreign(&self) -> bool {
        self.0.owner.is_foreign()
    }

    /// The address of the first byte; what it points to lives as long as a handle does.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.ptr.load(Ordering::Relaxed)
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

    /// How often the bytes were written in place.
    pub fn versions(&self) -> &Versions {
        &self.0.versions
    }

    /// A number that differs between buffers that live at the same time.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }

    /// Whether both are handles to the same buffer.
    pub fn same_as(&self, other: &Buffer) -> bool {
        self.id() == other.id()
    }

    /// Whether this is the only handle.
    pub fn is_sole(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// No bytes, shared by all who have none.
    pub fn nothing() -> Self {
        static NOTHING: OnceLock<Buffer> = OnceLock::new();
        NOTHING.get_or_init(|| Buffer::inline::<PADDING>(0)).clone()
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

    /// Where the bytes of a view lie, which is inside of the buffer.
    #[inline]
    fn check(&self, layout: &Layout, dtype: DType) -> Result<Span> {
        let base = self.as_ptr() as usize;
        match layout.extent(dtype.size()) {
            Some(range) if range.end <= self.0.len || range.is_empty() => {
                let (low, high) = (base.wrapping_add(range.start), base.wrapping_add(range.end));
                Ok(Span { low, high })
            }
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

impl<'a> Read<'a> {
    /// Whose bytes they are.
    pub fn buffer(&self) -> &'a Buffer {
        self.buffer
    }

    /// The bytes as elements in `layout`. Fails when they would lie outside of the buffer.
    pub fn src<'s>(&'s self, layout: &'s Layout, dtype: DType) -> Result<Src<'s>> {
        let span = self.buffer.check(layout, dtype)?;
        // SAFETY: the bounds were just checked, and the guard keeps writers out for 's.
        Ok(unsafe { Src::new(self.buffer.origin(layout), layout, dtype, span) })
    }
}

impl<'a> Write<'a> {
    /// Whose bytes they are.
    pub fn buffer(&self) -> &'a Buffer {
        self.buffer
    }

    /// As [`Read::src`].
    pub fn src<'s>(&'s self, layout: &'s Layout, dtype: DType) -> Result<Src<'s>> {
        let span = self.buffer.check(layout, dtype)?;
        // SAFETY: as for `Read`; a `Dst` of this guard that overlaps is the kernels' to refuse.
        Ok(unsafe { Src::new(self.buffer.origin(layout), layout, dtype, span) })
    }

    /// The bytes as elements to be written. Fails when they would lie outside of the buffer,
    /// overlap each other, or may not be written.
    pub fn dst<'s>(&'s self, layout: &'s Layout, dtype: DType) -> Result<Dst<'s>> {
        let span = self.buffer.check(layout, dtype)?;
        if !self.buffer.is_writable() {
            return Err(Error::ReadOnly { op: "write", arg: "buffer" });
        }
        if layout.overlaps_itself(dtype.size()) {
            return Err(Error::SelfOverlap { op: "write", arg: "view" });
        }
        // SAFETY: bounds, permission and distinctness were just checked, and the guard keeps
        // everyone else out for 's.
        Ok(unsafe { Dst::new(self.buffer.origin(layout), layout, dtype, span) })
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
    fn buffers_of_every_size_are_aligned_and_their_own() {
        for len in [0, 1, 255, 256, 257, 896, 897, 4096, 70_000] {
            let buffers = [Buffer::new(len).expect("small"), Buffer::new(len).expect("small")];
            let layout = Layout::contiguous("test", &[len], 1).expect("small");
            for buffer in &buffers {
                assert_eq!((buffer.len(), buffer.as_ptr() as usize % 64), (len, 0));
                assert!(buffer.write().dst(&layout, DType::U8).is_ok());
            }
            let starts = buffers.each_ref().map(|buffer| buffer.as_ptr() as usize);
            assert!(len == 0 || starts[0].abs_diff(starts[1]) >= len);
        }
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
