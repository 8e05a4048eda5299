//! All code that depends on the processor: detection of vector instructions, the code that uses
//! them, and the sizes of the caches.
//!
//! No code outside of this directory detects or enables a processor feature or calls an intrinsic.
//! A kernel uses vector instructions in one of three ways:
//!
//! * A loop that the compiler vectorizes implements [`Loop`] and runs through [`dispatch`]. It is
//!   compiled once per [`Simd`] token, and `dispatch` picks the highest level that the machine has.
//! * An algorithm that exists only for some levels is a function whose result tells how much of the
//!   work it did ([`Word::expand`], [`list_owned`]). The kernel has portable code for the rest.
//! * A short primitive ([`prefetch_first`], [`stream_lines`], [`pack`], ...) uses only instructions
//!   that every processor of the architecture has, so it is chosen at compile time.
//!
//! To support another architecture, add a module beside [`portable`] with the same functions, and
//! its levels and tokens. The portable functions are compiled on every architecture, and tests
//! compare some of them with the native ones.

use std::ops::Range;

pub mod caches;
mod level;
#[cfg_attr(
    target_arch = "x86_64",
    expect(
        dead_code,
        reason = "checked everywhere, and tests compare the native functions with it"
    )
)]
pub(crate) mod portable;
mod simd;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(not(target_arch = "x86_64"))]
use portable as native;
#[cfg(target_arch = "x86_64")]
use x86_64 as native;

pub(crate) use level::level;
pub use level::{Forced, Level, force};
pub(crate) use native::{
    Word, dispatch, fence, list_owned, pack, prefetch_first, prefetch_second, read_places,
    stream_lines, transpose, widens_halves,
};
pub(crate) use simd::{Loop, Simd};

/// The bytes of a cache line, which is the unit of prefetches and of non-temporal stores.
pub(crate) const LINE: usize = 64;

/// The input of [`list_owned`]: a block of entries of an index, and the data that belong to them.
#[derive(Clone)]
pub(crate) struct IndexBlock {
    /// The index values of the entries. They may be unaligned.
    pub(crate) values: *const i64,
    /// The number of entries.
    pub(crate) len: usize,
    /// The size of the axis. A negative index value counts from its end.
    pub(crate) size: usize,
    /// The range of places whose entries are listed.
    pub(crate) own: Range<usize>,
    /// The address of the data of the first entry, and the distance in bytes to those of the next.
    pub(crate) data: (*const u8, isize),
    /// The number of entries from the start of this block to the next one, which is prefetched.
    pub(crate) next: usize,
}

/// The result of [`list_owned`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    /// The number of entries that were read. The caller lists the others.
    pub(crate) done: usize,
    /// The number of entries that were listed.
    pub(crate) len: usize,
    /// Whether an entry that was read is out of range.
    pub(crate) outside: bool,
}

/// Passes a value through a register in a way that the compiler does not see through.
macro_rules! passed {
    ($value:expr) => {{
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        {
            let mut passed = $value;
            // SAFETY: the assembly is a comment. It changes no register and no memory.
            unsafe {
                std::arch::asm!(
                    "/* {0} */",
                    inout(reg) passed,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            passed
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        $value
    }};
}

/// Returns `pointer`. The compiler does not know that it is the same address, so it does not combine
/// accesses through both.
#[inline(always)]
pub(crate) fn hidden<T>(pointer: *mut T) -> *mut T {
    #[expect(
        clippy::pointers_in_nomem_asm_block,
        reason = "the pointer only passes through, nothing is accessed"
    )]
    {
        passed!(pointer)
    }
}

/// Returns `word`. The compiler does not know that it is the same number, so it does not turn a choice by
/// a mask into a branch.
#[inline(always)]
pub(crate) fn hidden_word(word: u64) -> u64 {
    passed!(word)
}
