//! An index: checked on the device, and counted from the front.

use inlay_core::{Layout, Result};
use smallvec::SmallVec;

use super::{Explain, sort};
use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::shader::{Access, Kernel};

/// Positions on an axis, in the index's shape.
pub struct Positions {
    words: Buffer,
    shape: SmallVec<[usize; 4]>,
}

impl Positions {
    /// Reads `index`, whose values count on an axis of `size`. If one is out of range the call fails
    /// with what `explain` says of the first, in row-major order.
    ///
    /// # Errors
    /// A device that is gone, or that refuses.
    pub fn read(index: View<'_>, size: usize, explain: Explain) -> Result<Self> {
        let (shape, flat) = (index.layout.shape(), contiguous(index.layout.numel())?);
        let words = Buffer::on(index.buffer.gpu(), 4 * index.layout.numel())?;
        let signed = index.dtype.integer_range().is_some_and(|(low, _)| low < 0);
        let body = include_str!("positions.wgsl");
        Kernel::new("positions", body, index.buffer)
            .numbers(index.dtype)
            .constant("SIGNED", signed.into())
            .checks(explain, index.buffer.len())?
            .params(&[count(size)?])
            .read("a", index)?
            .to(words_view(&words, &flat))?;
        Ok(Positions { words, shape: shape.into() })
    }

    /// The words, in row-major order.
    pub(super) fn words(&self) -> &Buffer {
        &self.words
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn count(&self) -> Result<u32> {
        count(self.shape.iter().product())
    }

    /// Where the word of each element of a shape lies that the index stretches to.
    pub(super) fn stretched(&self, shape: &[usize]) -> Result<Layout> {
        let own = Layout::contiguous("index", &self.shape, 4)?;
        Ok(own
            .broadcast_to(shape)
            .unwrap_or_else(|| unreachable!("the index itself was stretched")))
    }

    /// Writes them to a view of i64.
    ///
    /// # Errors
    /// A device that is gone, or that refuses.
    pub fn store(&self, to: View<'_>) -> Result<()> {
        let body = "fn value(i: u32) -> Word { return Word(load_p(i), 0u); }\n";
        Kernel::new("store_positions", body, to.buffer).words("p", &self.words).to(to)
    }

    /// Lets the call fail unless each of them names an earlier entry (backwards: a later one), or is
    /// the number of entries.
    ///
    /// # Errors
    /// A device that is gone, or that refuses.
    pub fn expect_chain(&self, backwards: bool, explain: Explain) -> Result<()> {
        Kernel::new("chain", include_str!("chain.wgsl"), &self.words)
            .constant("BACKWARDS", backwards.into())
            .checks(explain, 0)?
            .words("p", &self.words)
            .run(self.count()?)
    }
}

/// Words in order.
pub(super) fn words_view<'a>(buffer: &'a Buffer, layout: &'a Layout) -> View<'a> {
    View { buffer, layout, dtype: inlay_core::DType::U32 }
}

/// The layout of so many words.
pub(super) fn contiguous(words: usize) -> Result<Layout> {
    Layout::contiguous("words", &[words], 4)
}

/// `to[i]`, of i64, is the entry before or after `i` that names the same of `places`, or the number
/// of entries.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn neighbours(to: View<'_>, index: &Positions, places: usize, backwards: bool) -> Result<()> {
    let count = index.count()?;
    let sorted = sort::sort(index.words(), count, places)?;
    let kernel = Kernel::new("neighbours", include_str!("neighbours.wgsl"), to.buffer)
        .constant("BACKWARDS", backwards.into())
        .words("keys", &sorted.keys)
        .words("order", &sorted.order);
    kernel.put(to, count)
}

/// A buffer of words that are 0.
pub(super) fn zeros(like: &Buffer, words: u32) -> Result<Buffer> {
    let buffer = Buffer::on(like.gpu(), 4 * words as usize)?;
    crate::batch::clear(&buffer, 4 * u64::from(words.max(1)))?;
    Ok(buffer)
}

/// For each of `places` the last of `count` keys that names it, plus 1, or 0.
pub(super) fn winners(keys: &Buffer, count: u32, places: u32) -> Result<Buffer> {
    let table = zeros(keys, places)?;
    Kernel::new("winners", include_str!("winners.wgsl"), keys)
        .words("keys", keys)
        .operand("table", &table, 4, Access::Atomic)
        .run(count)?;
    Ok(table)
}
