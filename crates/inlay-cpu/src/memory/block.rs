//! Raw blocks of memory: aligned, zeroed when fresh, and on huge pages if they are large.

use std::alloc::{self, Layout};
use std::ptr::NonNull;

/// Every block is aligned to a cache line, which is also the width of the widest vector.
pub(super) const ALIGN: usize = 64;

/// Blocks of at least this many bytes, the size of a huge page, are mapped separately and ask for
/// huge pages. A copy into fresh 4 KiB pages takes several times as long as a copy into recycled or
/// huge pages.
pub(super) const HUGE: usize = 2 << 20;

/// Blocks of up to this many bytes are allocated by `malloc` and then zeroed here, and they are not
/// counted. With the padding, or the header of a buffer, they are small enough for the per-thread
/// cache of glibc's allocator, which takes 20 ns. That cache serves neither `calloc` nor aligned
/// requests. Updating a counter that all threads share would take 6 ns.
pub(super) const SMALL: usize = 896;

/// The alignment that blocks request from the allocator. A block begins at the next multiple of
/// [`ALIGN`] inside of the memory that the allocator returns.
const GIVEN_ALIGN: usize = 16;

/// An owned range of initialized bytes.
pub(super) struct RawBlock {
    ptr: NonNull<u8>,
    len: usize,
    /// The number of bytes between the address that the allocator returned and `ptr`.
    head: usize,
}

// SAFETY: a block is the only owner of its memory, and any thread may use or free it.
unsafe impl Send for RawBlock {}
// SAFETY: a shared reference to a block gives only its address and length.
unsafe impl Sync for RawBlock {}

impl RawBlock {
    /// Allocates `len` zeroed bytes. Returns `None` if the system is out of memory.
    pub(super) fn new(len: usize) -> Option<RawBlock> {
        if len >= HUGE {
            return map::new(len).map(|ptr| RawBlock { ptr, len, head: 0 });
        }
        if len == 0 {
            return Some(RawBlock { ptr: NOWHERE, len, head: 0 });
        }
        let (layout, zeroed) = (padded(len)?, len > SMALL);
        let give = if zeroed { alloc::alloc_zeroed } else { alloc::alloc };
        // SAFETY: the layout's size is not 0, because `len` is not.
        let start = NonNull::new(unsafe { give(layout) })?;
        let head = head_of(start.as_ptr() as usize);
        // SAFETY: `padded` has added room for the head, so `len` bytes after the head are
        // allocated.
        unsafe {
            let ptr = start.add(head);
            if !zeroed {
                ptr.write_bytes(0, len);
            }
            Some(RawBlock { ptr, len, head })
        }
    }

    pub(super) fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// Asks for huge pages for memory of any allocator that is going to be written for the first time.
/// Only whole huge pages inside of the memory are affected. (Copying 64 MiB into a new vector takes
/// a quarter of the time, because there are 32 page faults instead of 16,384.)
pub(crate) fn prefer_huge_pages(ptr: *mut u8, len: usize) {
    if len >= 2 * HUGE {
        map::prefer_huge_pages(ptr, len);
    }
}

impl Drop for RawBlock {
    fn drop(&mut self) {
        if self.len >= HUGE {
            map::free(self.ptr, self.len);
        } else if let Some(layout) = padded(self.len).filter(|_| self.len > 0) {
            // SAFETY: `new` allocated with this layout, `head` bytes before `ptr`.
            unsafe { alloc::dealloc(self.ptr.as_ptr().sub(self.head), layout) };
        }
    }
}

/// The address of blocks without bytes.
const NOWHERE: NonNull<u8> = NonNull::<Aligned>::dangling().cast();

#[repr(align(64))]
struct Aligned;

/// Returns the layout of an allocation that has room for `len` bytes at an aligned address.
fn padded(len: usize) -> Option<Layout> {
    Layout::from_size_align(len.checked_add(PADDING)?, GIVEN_ALIGN).ok()
}

/// The largest distance in bytes from an address that the allocator returns to an aligned address.
pub(super) const PADDING: usize = ALIGN - GIVEN_ALIGN;

/// Returns the distance in bytes from `address`, which the allocator returned, to the next aligned
/// address. It is at most [`PADDING`].
pub(super) fn head_of(address: usize) -> usize {
    address.wrapping_neg() % ALIGN
}

#[cfg(unix)]
mod map {
    use std::ptr::{self, NonNull};

    use super::HUGE;

    /// Maps `len` bytes at an address that is a multiple of the huge page size.
    pub(super) fn new(len: usize) -> Option<NonNull<u8>> {
        let padded = len.checked_add(HUGE)?;
        // SAFETY: an anonymous private mapping at an address that the system chooses does not
        // change memory that is in use.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                padded,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let head = start.cast::<u8>().align_offset(HUGE);
        // The end of the block is rounded up to a page, because only whole pages can be unmapped.
        // SAFETY: the call only returns a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let end = head + len.next_multiple_of(page.max(1));
        // SAFETY: head <= HUGE, so the block and both trimmed ends lie inside of the mapping.
        unsafe {
            if head > 0 {
                libc::munmap(start, head);
            }
            if end < padded {
                libc::munmap(start.cast::<u8>().add(end).cast(), padded - end);
            }
            let ptr = start.cast::<u8>().add(head);
            #[cfg(target_os = "linux")]
            libc::madvise(ptr.cast(), len, libc::MADV_HUGEPAGE);
            NonNull::new(ptr)
        }
    }

    /// Asks for huge pages inside of the `len` bytes at `ptr`.
    pub(super) fn prefer_huge_pages(ptr: *mut u8, len: usize) {
        let head = ptr.align_offset(HUGE);
        let pages = len.saturating_sub(head) / HUGE * HUGE;
        #[cfg(target_os = "linux")]
        // SAFETY: the advice does not change the contents of memory. An error is ignored, because
        // the memory works without huge pages.
        unsafe {
            libc::madvise(ptr.wrapping_add(head).cast(), pages, libc::MADV_HUGEPAGE);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = pages;
    }

    pub(super) fn free(ptr: NonNull<u8>, len: usize) {
        // SAFETY: `new` mapped these pages. Only `RawBlock::drop` calls this function, and it owns
        // them.
        unsafe { libc::munmap(ptr.as_ptr().cast(), len) };
    }
}

#[cfg(not(unix))]
mod map {
    use std::alloc::{self, Layout};
    use std::ptr::NonNull;

    pub(super) fn new(len: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(len, super::ALIGN).ok()?;
        // SAFETY: the layout's size is not 0, because `RawBlock::new` calls this for large blocks
        // only.
        NonNull::new(unsafe { alloc::alloc_zeroed(layout) })
    }

    pub(super) fn prefer_huge_pages(_: *mut u8, _: usize) {}

    pub(super) fn free(ptr: NonNull<u8>, len: usize) {
        if let Ok(layout) = Layout::from_size_align(len, super::ALIGN) {
            // SAFETY: `new` allocated this pointer with this layout.
            unsafe { alloc::dealloc(ptr.as_ptr(), layout) };
        }
    }
}
