//! The reduction tree that all devices use, so that they give the same bits.
//!
//! Elements are reduced in blocks of [`FOLD_BLOCK`]. Element `k` of a block goes to the lane
//! `k % LANES`. Then neighbouring lanes are combined pairwise, and then neighbouring blocks, until
//! one result is left.

/// The number of elements of a block.
pub const FOLD_BLOCK: usize = 1024;

/// The number of lanes of a block. Lanes are independent partial results, so that no addition waits
/// for the one before. On the CPU they are eight vectors of four floats. (The sum of 16 MiB takes
/// 1.8 times as long with 8 lanes.)
pub const FOLD_LANES: usize = 32;

/// The number of lanes of a block that has no more elements than this. Further lanes would hold
/// only the neutral value.
pub const FOLD_FEW_LANES: usize = 8;
