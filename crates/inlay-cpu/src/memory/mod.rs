//! Memory: blocks from a pool that recycles them, and locked buffers over such blocks or over
//! foreign memory.

mod block;
mod buffer;
mod pool;
mod scratch;

pub use buffer::{Buffer, ReadGuard, Rest, WriteGuard};
pub(crate) use pool::CACHE_LIMIT;
pub use pool::{Stats, empty_cache, set_cache_limit, stats};
pub use scratch::{Plain, Scratch, Space};
