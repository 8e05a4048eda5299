//! Index values that were checked on the device and converted to positions.

use inlay_core::{DType, Error, Layout, Result, ShapeText};
use smallvec::SmallVec;

use super::{Explain, expect, sort};
use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::shader::{Access, Kernel, wgsl, wgsl_file};

/// Positions on an axis, in the shape of the index. Negative index values are already converted.
pub struct Positions {
    words: Buffer,
    shape: SmallVec<[usize; 4]>,
    /// The size of the axis. All positions are smaller, if the check has not failed.
    size: usize,
}

impl Positions {
    /// Reads `index`, whose values refer to an axis of `size`. If a value is out of range, the call
    /// fails with the error that `explain` makes for the first such value in row-major order.
    ///
    /// # Errors
    /// The dtype is not an integer, or the device is lost or refuses the call.
    pub fn read(index: View<'_>, size: usize, explain: Explain) -> Result<Self> {
        let Some((lowest, _)) = index.dtype.integer_range() else {
            let (op, arg, got) = ("positions", "index", index.dtype);
            return Err(Error::DType { op, arg, got, expected: "an integer" });
        };
        let (shape, flat) = (index.layout.shape(), contiguous(index.layout.numel())?);
        let words = Buffer::on(index.buffer.gpu(), 4 * index.layout.numel())?;
        Kernel::new("positions", wgsl_file!("positions.wgsl"), index.buffer)
            .computes_in(index.dtype)
            .constant("SIGNED", (lowest < 0).into())
            .checks(explain, index.buffer.len())?
            .params(&[count(size)?])
            .read("a", index)?
            .to(words_view(&words, &flat))?;
        Ok(Positions { words, shape: shape.into(), size })
    }

    /// The positions as words, in row-major order.
    pub(super) fn words(&self) -> &Buffer {
        &self.words
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The size of the axis against which the positions were checked.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn count(&self) -> Result<u32> {
        count(self.shape.iter().product())
    }

    /// The layout of the words when the index is broadcast to `shape`.
    pub(super) fn broadcast(&self, op: &'static str, shape: &[usize]) -> Result<Layout> {
        let own = Layout::contiguous("index", &self.shape, 4)?;
        let (got, to) = (ShapeText::of(&self.shape), ShapeText::of(shape));
        own.broadcast_to(shape).ok_or(Error::Broadcast { op, arg: "index", got, to })
    }

    /// Writes the positions to a view of i64.
    ///
    /// # Errors
    /// The view doesn't fit, or the device is lost or refuses the call.
    pub fn store(&self, to: View<'_>) -> Result<()> {
        let op = "store_positions";
        expect::dtype(op, "to", to, DType::I64)?;
        expect::elements(op, "to", to.layout.numel(), self.count()? as usize)?;
        let body = wgsl!("fn value(i: u32) -> Stored { return Stored(load_p(i), 0u); }\n");
        Kernel::new(op, body, to.buffer).words("p", &self.words).to(to)
    }

    /// Records a check that each position names an earlier entry (backwards: a later one), or is
    /// the number of entries.
    ///
    /// # Errors
    /// The device is lost or refuses the call.
    pub fn expect_chain(&self, backwards: bool, explain: Explain) -> Result<()> {
        Kernel::new("chain", wgsl_file!("chain.wgsl"), &self.words)
            .constant("BACKWARDS", backwards.into())
            .checks(explain, 0)?
            .words("p", &self.words)
            .run(self.count()?)
    }
}

/// Returns a view of words.
pub(super) fn words_view<'a>(buffer: &'a Buffer, layout: &'a Layout) -> View<'a> {
    View { buffer, layout, dtype: DType::U32 }
}

/// Returns a contiguous layout of `words` words.
pub(super) fn contiguous(words: usize) -> Result<Layout> {
    Layout::contiguous("words", &[words], 4)
}

/// Writes to `to[i]` the last entry before `i` (backwards: the first one after it) that names the
/// same place, or the number of entries if there is none. `to` is i64.
///
/// # Errors
/// The view doesn't fit, or the device is lost or refuses the call.
pub fn neighbours(to: View<'_>, index: &Positions, places: usize, backwards: bool) -> Result<()> {
    let (op, count) = ("neighbours", index.count()?);
    expect::dtype(op, "to", to, DType::I64)?;
    expect::elements(op, "to", to.layout.numel(), count as usize)?;
    expect::positions(op, index, places)?;
    let sorted = sort::sort(index.words(), count, places)?;
    Kernel::new(op, wgsl_file!("neighbours.wgsl"), to.buffer)
        .constant("BACKWARDS", backwards.into())
        .words("keys", &sorted.keys)
        .words("order", &sorted.order)
        .put(to, count)
}

/// Returns a buffer of zeros.
pub(super) fn zeros(like: &Buffer, words: u32) -> Result<Buffer> {
    let buffer = Buffer::on(like.gpu(), 4 * words as usize)?;
    crate::batch::clear(&buffer, 4 * u64::from(words.max(1)))?;
    Ok(buffer)
}

/// Returns for each of `places` places the number of the last key that names it, plus 1, or 0 if
/// there is none.
pub(super) fn winners(keys: &Buffer, count: u32, places: u32) -> Result<Buffer> {
    let table = zeros(keys, places)?;
    Kernel::new("winners", wgsl_file!("winners.wgsl"), keys)
        .words("keys", keys)
        .operand("table", &table, 4, Access::Atomic)
        .run(count)?;
    Ok(table)
}
