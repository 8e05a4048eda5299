//! Everything that depends on the processor: which vector instructions it has, the code that uses
//! them, and the sizes of its caches.
//!
//! Nothing outside of this directory detects a feature, enables one, or calls an intrinsic. A kernel
//! reaches vector instructions in one of three ways:
//!
//! * A loop that the compiler vectorizes implements [`Loop`] and runs through [`dispatch`], which
//!   compiles it once per [`Simd`] token and picks the widest that the machine has.
//! * An algorithm that exists only for some levels is a function that says whether it did the work
//!   ([`Word::expand`], [`list_owned`]). The kernel keeps a portable path for the other levels.
//! * A short primitive ([`prefetch_first`], [`stream_lines`], [`pack`], ...) uses only what every
//!   processor of the architecture has, so it is chosen at compile time.
//!
//! Another architecture is a module beside [`portable`] with the same functions: its levels, its
//! tokens and its primitives. The portable functions are compiled into every test build, and the tests
//! compare them with those of the architecture.

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
pub(crate) use simd::Loop;
pub use simd::Simd;

/// Bytes of a cache line: the unit of prefetches and of non-temporal stores.
pub(crate) const LINE: usize = 64;

/// What [`list_owned`] reads: `len` index values of an axis of `size`, and what they stand for.
#[derive(Clone)]
pub(crate) struct IndexBlock {
    /// The values. They may be unaligned.
    pub(crate) values: *const i64,
    /// How many there are.
    pub(crate) len: usize,
    /// The size of the axis. A negative value counts from its end.
    pub(crate) size: usize,
    /// The places that are listed.
    pub(crate) own: Range<usize>,
    /// Where the data of the first entry lies, and the bytes from one entry to the next.
    pub(crate) data: (*const u8, isize),
    /// The most entries of a block. The values of the next block are prefetched.
    pub(crate) next: usize,
}

/// What [`list_owned`] did with a block.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    /// Entries that were read. The caller lists the others.
    pub(crate) done: usize,
    /// Entries that were listed.
    pub(crate) len: usize,
    /// Whether an entry that was read is out of range.
    pub(crate) outside: bool,
}
