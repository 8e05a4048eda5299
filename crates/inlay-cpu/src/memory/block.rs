//! Raw blocks: aligned, zeroed when fresh, and large ones on huge pages where the system has them.

use std::alloc::{self, Layout};
use std::ptr::NonNull;

/// Every block starts on a cache line, which is also the widest vector.
pub(super) const ALIGN: usize = 64;

/// From here on a block is mapped on its own and asks for huge pages: it is their size, and a
/// copy into fresh 4 KiB pages takes several times as long as one into recycled or huge ones.
pub(super) const HUGE: usize = 2 << 20;

/// Up to here a block is zeroed by hand and not counted. With its padding, or a buffer's header, it
/// is what glibc's allocator hands out from a list of each thread, in 20 ns, but not for `calloc`,
/// nor where an alignment is asked for; a count that all threads share takes 6 ns each time.
pub(super) const SMALL: usize = 896;

/// What every allocator aligns to; blocks are moved up to [`ALIGN`] inside of what it gives.
const GIVEN_ALIGN: usize = 16;

/// An owned range of initialized bytes.
pub(super) struct Block {
    ptr: NonNull<u8>,
    len: usize,
    /// Bytes between what the allocator gave and `ptr`.
    head: usize,
}

// SAFETY: a block is plain memory that it alone owns; any thread may use or free it.
unsafe impl Send for Block {}
// SAFETY: a shared block only tells its address and length.
unsafe impl Sync for Block {}

impl Block {
    /// `len` zeroed bytes, or `None` when the system has no more.
    pub(super) fn new(len: usize) -> Option<Block> {
        if len >= HUGE {
            return map::new(len).map(|ptr| Block { ptr, len, head: 0 });
        }
        if len == 0 {
            return Some(Block { ptr: NOWHERE, len, head: 0 });
        }
        let (layout, zeroed) = (padded(len)?, len > SMALL);
        let give = if zeroed { alloc::alloc_zeroed } else { alloc::alloc };
        // SAFETY: the layout's size is not 0.
        let start = NonNull::new(unsafe { give(layout) })?;
        let head = head_of(start.as_ptr() as usize);
        // SAFETY: the padding has room for the head, so the bytes from there on are the block's.
        unsafe {
            let ptr = start.add(head);
            if !zeroed {
                ptr.write_bytes(0, len);
            }
            Some(Block { ptr, len, head })
        }
    }

    pub(super) fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.len >= HUGE {
            map::free(self.ptr, self.len);
        } else if let Some(layout) = padded(self.len).filter(|_| self.len > 0) {
            // SAFETY: `new` allocated with this layout, and went up by the head.
            unsafe { alloc::dealloc(self.ptr.as_ptr().sub(self.head), layout) };
        }
    }
}

/// Where blocks without bytes lie.
const NOWHERE: NonNull<u8> = NonNull::<Aligned>::dangling().cast();

#[repr(align(64))]
struct Aligned;

/// What to ask of the allocator for `len` aligned bytes.
fn padded(len: usize) -> Option<Layout> {
    Layout::from_size_align(len.checked_add(PADDING)?, GIVEN_ALIGN).ok()
}

/// Bytes for the way from the allocator's alignment to ours.
pub(super) const PADDING: usize = ALIGN - GIVEN_ALIGN;

/// How far the next aligned address is from `address`, which the allocator gave: at most
/// [`PADDING`].
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
        // SAFETY: an anonymous private mapping at an address of the system's choice touches
        // nothing that exists.
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
        // Page-aligned lengths, so that what is unmapped are whole pages beyond the block's.
        let end = head + len.next_multiple_of(4096);
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

    pub(super) fn free(ptr: NonNull<u8>, len: usize) {
        // SAFETY: `new` mapped these pages and nothing refers to them any more.
        unsafe { libc::munmap(ptr.as_ptr().cast(), len) };
    }
}

#[cfg(not(unix))]
mod map {
    use std::alloc::{self, Layout};
    use std::ptr::NonNull;

    pub(super) fn new(len: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(len, super::ALIGN).ok()?;
        // SAFETY: the layout's size is not 0, since large blocks alone come here.
        NonNull::new(unsafe { alloc::alloc_zeroed(layout) })
    }

    pub(super) fn free(ptr: NonNull<u8>, len: usize) {
        if let Ok(layout) = Layout::from_size_align(len, super::ALIGN) {
            // SAFETY: `new` allocated this pointer with this layout.
            unsafe { alloc::dealloc(ptr.as_ptr(), layout) };
        }
    }
}
