//! Shared buffers: bytes that several tensors may view. A lock protects them, so safe code can't
//! cause data races.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use inlay_core::{DType, Error, Layout, Result, Versions};

use super::block::{PADDING, head_of};
use super::borrow::Borrows;
use super::owner::{Foreign, FromVec, Inline, Kind, Lent, Pooled};
use super::shared::Shared;
use crate::view::Span;
use crate::{Dst, Element, Src};

/// A handle to shared bytes. A clone is another handle to the same bytes.
#[derive(Clone)]
pub struct Buffer(Shared);

impl Buffer {
    /// Allocates `len` bytes, aligned to 64 bytes. They are initialized, but their values are
    /// unspecified.
    pub fn new(len: usize) -> Result<Self> {
        // Two sizes of inline buffers waste less memory than one. An 8 x 8 tensor of `f32` fits
        // into the first.
        const TINY: usize = 256;
        const SMALL: usize = super::block::SMALL;
        if len <= TINY {
            return Ok(Buffer::inline::<{ TINY + PADDING }>(len));
        }
        if len <= SMALL {
            return Ok(Buffer::inline::<{ SMALL + PADDING }>(len));
        }
        let block = Pooled::new(len)?;
        Ok(Buffer(Shared::new(len, true, block, Pooled::ptr)))
    }

    /// Allocates `len` bytes together with the reference count: one allocation instead of two, for
    /// tiny calls.
    fn inline<const N: usize>(len: usize) -> Self {
        Buffer(Shared::new(len, true, Inline::<N>::new(), |owner| {
            let start = owner.start();
            // The array has at least `PADDING` bytes more than `len`, so that the bytes can begin at
            // the next aligned address.
            let ptr = start.map_addr(|address| address.saturating_add(head_of(address.get())));
            // SAFETY: for that reason the bytes lie inside of the array. There is no handle yet.
            unsafe { ptr.write_bytes(0, len) };
            ptr
        }))
    }

    /// Returns a buffer that holds one element. The element is written without a lock, because
    /// there is no second handle yet.
    pub fn single<T: Element>(value: T) -> Result<Self> {
        let buffer = Buffer::new(size_of::<T::Stored>())?;
        // SAFETY: the buffer was made for the bytes of one `T::Stored`, is aligned to 64 bytes, and
        // has no other handle yet.
        unsafe { buffer.as_ptr().cast::<T::Stored>().write(value.store()) };
        Ok(buffer)
    }

    /// Returns a buffer over the elements of a vector, without a copy. They are aligned as `T` is,
    /// which may be less than 64 bytes.
    pub fn from_vec<T: Element>(values: Vec<T>) -> Self {
        const { assert!(size_of::<T>() == size_of::<T::Stored>(), "a value is stored as it is") };
        let len = size_of_val(values.as_slice());
        let owner = FromVec::new(values);
        Buffer(Shared::new(len, true, owner, FromVec::ptr))
    }

    /// Returns a buffer over memory that belongs to `owner`. The owner is dropped with the last
    /// handle.
    ///
    /// # Safety
    /// The `len` bytes at `ptr` are initialized and valid for reads, and for writes if `writable`,
    /// while `owner` lives. The caller is responsible for races with code that accesses the bytes
    /// in another way, for example through another buffer. If indices or masks change while a
    /// kernel runs, the kernel still accesses only its views, but the values of its result are
    /// unspecified.
    pub unsafe fn foreign(
        ptr: NonNull<u8>,
        len: usize,
        writable: bool,
        owner: impl Any + Send + Sync,
    ) -> Self {
        Buffer(Shared::new(len, writable, Foreign::new(owner), |_| ptr))
    }

    /// Returns a buffer over memory of another library that the caller keeps alive.
    ///
    /// # Safety
    /// The `len` bytes at `ptr` are initialized and valid for reads, and for writes if `writable`,
    /// until no handle to the buffer is used any more. Otherwise as for [`Buffer::foreign`].
    pub unsafe fn lent(ptr: NonNull<u8>, len: usize, writable: bool) -> Self {
        Buffer(Shared::new(len, writable, Lent, |_| ptr))
    }

    /// Makes this buffer one over other memory, as [`Buffer::lent`] does, without an allocation.
    /// Returns `false` if it was not made by [`Buffer::lent`], or is not the only handle.
    ///
    /// # Safety
    /// As for [`Buffer::lent`].
    #[inline]
    pub unsafe fn lend_again(&mut self, ptr: NonNull<u8>, len: usize, writable: bool) -> bool {
        let Some(state) = self.0.sole_state().filter(|state| state.kind == Kind::Lent) else {
            return false;
        };
        (state.ptr, state.len, state.writable) = (ptr, len, writable);
        state.lock = RwLock::new(());
        state.versions = Versions::new();
        true
    }

    /// Returns whether the buffer was made by [`Buffer::lent`].
    pub fn is_lent(&self) -> bool {
        self.0.state().kind == Kind::Lent
    }

    /// Returns whether the bytes belong to another library.
    pub fn is_foreign(&self) -> bool {
        self.0.state().kind != Kind::Own
    }

    /// Asks for huge pages for memory of another library that is about to be written for the first
    /// time. Otherwise most of the time of the write is page faults.
    pub fn prefer_huge_pages(&self) {
        if self.is_foreign() && self.is_writable() {
            super::prefer_huge_pages(self.as_ptr(), self.len());
        }
    }

    /// Returns the address of the first byte. The bytes live as long as a handle does, unless they
    /// were [lent](Buffer::lent).
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.state().ptr.as_ptr()
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.0.state().len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.state().len == 0
    }

    /// Returns whether the bytes may be written.
    pub fn is_writable(&self) -> bool {
        self.0.state().writable
    }

    /// Returns the version counter, which counts how often the bytes were written in place.
    pub fn versions(&self) -> &Versions {
        &self.0.state().versions
    }

    /// Returns a number that is different for any two buffers that exist at the same time.
    pub fn id(&self) -> usize {
        self.0.id()
    }

    /// Returns whether both are handles to the same buffer.
    pub fn same_as(&self, other: &Buffer) -> bool {
        self.id() == other.id()
    }

    /// Returns whether this is the only handle.
    pub fn is_sole(&self) -> bool {
        self.0.is_sole()
    }

    /// Returns a buffer without bytes. All calls return handles to the same one.
    pub fn nothing() -> Self {
        static NOTHING: OnceLock<Buffer> = OnceLock::new();
        NOTHING.get_or_init(|| Buffer::inline::<PADDING>(0)).clone()
    }

    /// Returns whether the address ranges of two views overlap. A view is given by its layout and
    /// its element size.
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

    /// Locks the bytes for reading: waits until nobody writes, and blocks writers while the guard
    /// lives.
    pub fn read(&self) -> ReadGuard<'_> {
        let guard = self.0.state().lock.read().unwrap_or_else(PoisonError::into_inner);
        ReadGuard { buffer: self, _guard: guard }
    }

    /// Locks the bytes for writing: waits until nobody reads or writes, and blocks all others while
    /// the guard lives. It does not wait for a [`Borrow`](super::Borrow), but while one exists
    /// [`WriteGuard::dst`] fails.
    pub fn write(&self) -> WriteGuard<'_> {
        let guard = self.0.state().lock.write().unwrap_or_else(PoisonError::into_inner);
        WriteGuard { buffer: self, _guard: guard }
    }

    /// Like [`Buffer::read`], but returns `None` instead of waiting.
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_>> {
        let guard = match self.0.state().lock.try_read() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(ReadGuard { buffer: self, _guard: guard })
    }

    /// Like [`Buffer::write`], but returns `None` instead of waiting.
    #[inline]
    pub fn try_write(&self) -> Option<WriteGuard<'_>> {
        let guard = match self.0.state().lock.try_write() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(WriteGuard { buffer: self, _guard: guard })
    }

    /// Returns the count of the slices that exist outside of the lock.
    pub(super) fn borrows(&self) -> &Borrows {
        &self.0.state().borrows
    }

    /// Returns the address range of a view. Fails unless it lies inside of the buffer.
    #[inline(always)]
    fn check(&self, layout: &Layout, dtype: DType) -> Result<Span> {
        let span = self.span(layout, dtype);
        match span.low <= span.high {
            true => Ok(span),
            false => Err(Error::OutOfBounds { what: "a view", len: self.0.state().len }),
        }
    }

    /// Returns the address range of a view, or one that ends before it begins if the view leaves
    /// the buffer. It is returned in two registers. A `Result` would be returned in memory.
    #[inline(never)]
    fn span(&self, layout: &Layout, dtype: DType) -> Span {
        let base = self.as_ptr() as usize;
        match layout.extent(dtype.size()) {
            Some(range) if range.end <= self.0.state().len || range.is_empty() => {
                let (low, high) = (base.wrapping_add(range.start), base.wrapping_add(range.end));
                Span { low, high }
            }
            _ => Span { low: 1, high: 0 },
        }
    }

    /// Returns the address of a view's first element. It may be any address if the view has no
    /// elements.
    fn origin(&self, layout: &Layout) -> *mut u8 {
        self.as_ptr().wrapping_add(layout.offset())
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.0.state().len).finish_non_exhaustive()
    }
}

/// Shared access to a buffer's bytes.
pub struct ReadGuard<'a> {
    buffer: &'a Buffer,
    _guard: RwLockReadGuard<'a, ()>,
}

/// Exclusive access to a buffer's bytes.
pub struct WriteGuard<'a> {
    buffer: &'a Buffer,
    _guard: RwLockWriteGuard<'a, ()>,
}

/// The bytes of a buffer outside of a [`Dst`]. They may be read while the `Dst` is written.
#[derive(Clone, Copy)]
pub struct Rest<'a> {
    buffer: &'a Buffer,
    written: Span,
}

impl<'a> ReadGuard<'a> {
    /// Returns the buffer that is locked.
    pub fn buffer(&self) -> &'a Buffer {
        self.buffer
    }

    /// Returns a view of the elements of `layout`. Fails if an element lies outside of the buffer.
    #[inline(always)]
    pub fn src<'s>(&'s self, layout: &'s Layout, dtype: DType) -> Result<Src<'s>> {
        let span = self.buffer.check(layout, dtype)?;
        // SAFETY: `check` has checked that the elements lie inside of the buffer and the span. The
        // guard is borrowed for `'s` and blocks writers.
        Ok(unsafe { Src::new(self.buffer.origin(layout), layout, dtype, span) })
    }
}

impl<'a> WriteGuard<'a> {
    /// Returns the buffer that is locked.
    pub fn buffer(&self) -> &'a Buffer {
        self.buffer
    }

    /// As [`ReadGuard::src`].
    pub fn src<'s>(&'s self, layout: &'s Layout, dtype: DType) -> Result<Src<'s>> {
        let span = self.buffer.check(layout, dtype)?;
        // SAFETY: as for `ReadGuard::src`. While this guard is borrowed for `'s`, it gives out no
        // `Dst`.
        Ok(unsafe { Src::new(self.buffer.origin(layout), layout, dtype, span) })
    }

    /// Returns a view of the elements of `layout` for writing. Fails if an element lies outside of
    /// the buffer, if elements overlap each other, or if the buffer is read-only or borrowed.
    ///
    /// The guard is borrowed exclusively, so no other view of it can exist at the same time:
    ///
    /// ```compile_fail,E0499
    /// # use inlay_core::{DType, Layout};
    /// # use inlay_cpu::Buffer;
    /// # let buffer = Buffer::new(4).unwrap();
    /// # let layout = Layout::contiguous("doc", &[4], 1).unwrap();
    /// let mut guard = buffer.write();
    /// let one = guard.dst(&layout, DType::U8);
    /// let two = guard.dst(&layout, DType::U8); // a second exclusive borrow
    /// drop((one, two));
    /// ```
    ///
    /// ```compile_fail,E0502
    /// # use inlay_core::{DType, Layout};
    /// # use inlay_cpu::Buffer;
    /// # let buffer = Buffer::new(4).unwrap();
    /// # let layout = Layout::contiguous("doc", &[4], 1).unwrap();
    /// let mut guard = buffer.write();
    /// let src = guard.src(&layout, DType::U8);
    /// let dst = guard.dst(&layout, DType::U8); // `src` still borrows the guard
    /// drop((src, dst));
    /// ```
    #[inline(always)]
    pub fn dst<'s>(&'s mut self, layout: &'s Layout, dtype: DType) -> Result<Dst<'s>> {
        let span = self.buffer.check(layout, dtype)?;
        if !self.buffer.is_writable() {
            return Err(Error::ReadOnly { op: "write", arg: "buffer" });
        }
        // The lock is held, so nobody can begin to borrow the bytes after this check.
        if self.buffer.is_borrowed() {
            return Err(Error::Borrowed { op: "write", arg: "buffer" });
        }
        if layout.overlaps_itself(dtype.size()) {
            return Err(Error::SelfOverlap { op: "write", arg: "view" });
        }
        // SAFETY: the bounds, the permission to write, that nothing is borrowed and that elements
        // don't overlap were just checked. For `'s` there is no other guard because of the lock, and no other view of this
        // guard because it is borrowed exclusively.
        Ok(unsafe { Dst::new(self.buffer.origin(layout), layout, dtype, span) })
    }

    /// Returns [`WriteGuard::dst`], and the other bytes of the buffer for reading.
    ///
    /// ```
    /// # use inlay_core::{DType, Layout, ResolvedSlice};
    /// # use inlay_cpu::{Buffer, kernels};
    /// # let buffer = Buffer::new(4).unwrap();
    /// let whole = Layout::contiguous("doc", &[4], 1).unwrap();
    /// let [low, high] = [0, 2].map(|start| whole.slice(0, ResolvedSlice { start, step: 1, len: 2 }));
    /// let mut guard = buffer.write();
    /// kernels::store(guard.dst(&whole, DType::U8).unwrap(), &[1u8, 2, 3, 4]);
    /// let (dst, rest) = guard.split(&low, DType::U8).unwrap();
    /// kernels::copy(dst, rest.src(&high, DType::U8).unwrap());
    /// let all = guard.src(&whole, DType::U8).unwrap();
    /// assert_eq!(kernels::load::<u8>(all).unwrap(), [3, 4, 3, 4]);
    /// ```
    #[inline(always)]
    pub fn split<'s>(
        &'s mut self,
        layout: &'s Layout,
        dtype: DType,
    ) -> Result<(Dst<'s>, Rest<'s>)> {
        let buffer = self.buffer;
        let dst = self.dst(layout, dtype)?;
        let rest = Rest { buffer, written: dst.span() };
        Ok((dst, rest))
    }
}

impl<'a> Rest<'a> {
    /// Returns the buffer that is locked.
    pub fn buffer(&self) -> &'a Buffer {
        self.buffer
    }

    /// As [`ReadGuard::src`].
    ///
    /// # Panics
    /// If the address range of the source overlaps that of the destination.
    #[inline(always)]
    pub fn src(&self, layout: &'a Layout, dtype: DType) -> Result<Src<'a>> {
        let span = self.buffer.check(layout, dtype)?;
        assert!(self.written.is_apart(span), "source and destination overlap");
        // SAFETY: the bounds were just checked. The write guard is borrowed for `'a` and has given
        // out one `Dst`, whose span does not overlap this one, as was just checked. So nobody
        // writes these bytes for `'a`.
        Ok(unsafe { Src::new(self.buffer.origin(layout), layout, dtype, span) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::stats;

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
        // Another test may empty the cache in between, so several attempts are made.
        let comes_back = |_| {
            let reused = stats().reused;
            drop(Buffer::new(3 << 20).expect("small"));
            stats().reused > reused
        };
        assert!((0..100).any(comes_back));
    }
}
