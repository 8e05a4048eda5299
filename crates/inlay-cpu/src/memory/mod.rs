//! Memory: blocks from a pool that recycles them, and locked buffers over such blocks, over
//! vectors or over foreign memory.

mod block;
mod borrow;
mod buffer;
mod owner;
mod pool;
mod scratch;
mod shared;

pub(crate) use block::prefer_huge_pages;
pub use borrow::Borrow;
pub use buffer::{Buffer, ReadGuard, Rest, WriteGuard};
pub(crate) use pool::CACHE_LIMIT;
pub use pool::{Stats, empty_cache, set_cache_limit, stats};
pub use scratch::{Plain, Scratch, Space};
