//! The shape of the tree by which all devices fold, so that they give the same bits.
//!
//! Elements are folded in blocks of [`FOLD_BLOCK`]. Element `k` of a block goes to lane `k % LANES`. Then
//! neighbouring lanes are joined pairwise, and then neighbouring blocks, until one result is left.

/// Elements of a block.
pub const FOLD_BLOCK: usize = 1024;

/// Lanes of a block: independent partial results, so that no addition waits for the one before. On the CPU
/// they are eight vectors of four floats. (The sum of 16 MiB takes 1.8 times as long with 8 lanes.)
pub const FOLD_LANES: usize = 32;

/// Lanes of a block that has no more elements than this. The other lanes would stay neutral.
pub const FOLD_FEW_LANES: usize = 8;
