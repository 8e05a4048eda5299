//! Memory: blocks from a recycling pool, and locked buffers made of them or of foreign memory.

mod block;
mod buffer;
mod pool;
mod scratch;

pub use buffer::{Buffer, ReadGuard, Rest, WriteGuard};
pub use pool::{Stats, empty_cache, set_cache_limit, stats};
pub use scratch::{Plain, Scratch, Space};
