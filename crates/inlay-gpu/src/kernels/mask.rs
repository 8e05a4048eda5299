//! Masks: counted once into bits, then expanded or compressed.

use inlay_core::Result;

use super::Explain;
use super::sums::exclusive;
use crate::View;
use crate::layout::{count, is_dense};
use crate::memory::Buffer;
use crate::shader::{Access, Kernel};

/// A mask in row-major order.
pub struct Bits {
    /// 32 elements a word.
    words: Buffer,
    /// For each word, how many are true before it; and at the end, in all.
    before: Buffer,
    len: u32,
}

const RANK: &str = include_str!("rank.wgsl");

impl Bits {
    /// Reads a bool view.
    ///
    /// # Errors
    /// A device that is gone, or that refuses.
    pub fn read(mask: View<'_>) -> Result<Self> {
        let len = count(mask.layout.numel())?;
        let words = len.div_ceil(32);
        let room = |words: u32| Buffer::on(mask.buffer.gpu(), 4 * words as usize);
        let bits = Bits { words: room(words)?, before: room(words + 1)?, len };
        Kernel::new("pack", include_str!("pack.wgsl"), mask.buffer)
            .constant("DENSE", is_dense(mask.layout, 1).into())
            .params(&[len, (mask.layout.offset() / 4) as u32])
            .read("a", mask)?
            .operand("words", &bits.words, 4, Access::Write)
            .operand("before", &bits.before, 4, Access::Write)
            .run(words + 1)?;
        exclusive(&bits.before, words + 1)?;
        Ok(bits)
    }

    /// How many are true; waits for the device.
    ///
    /// # Errors
    /// What the device has found until now.
    pub fn ones(&self) -> Result<usize> {
        let last = 4 * self.len.div_ceil(32) as usize;
        let bytes = crate::batch::download(&self.before, last, 4)?;
        Ok(bytes.iter().rev().fold(0, |ones, byte| ones << 8 | usize::from(*byte)))
    }

    /// Lets the call fail when more than `have` are true; `explain` gets how many are.
    ///
    /// # Errors
    /// A device that is gone, or that refuses.
    pub fn expect_at_most(&self, have: usize, explain: Explain) -> Result<()> {
        let have = u32::try_from(have).unwrap_or(u32::MAX);
        Kernel::new("enough", include_str!("enough.wgsl"), &self.before)
            .checks(explain, 0)?
            .params(&[self.len.div_ceil(32), have])
            .words("before", &self.before)
            .run(1)
    }
}

/// `to = base`, but the k-th true place takes the k-th element of `source` in row-major order.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn expand(to: View<'_>, base: Option<View<'_>>, bits: &Bits, source: View<'_>) -> Result<()> {
    let keep = "fn keep(i: u32) -> bool { return is_true(i); }\n\
                fn value(i: u32) -> Word { return load_a(at_a(rank(i))); }\n";
    let choose = "fn value(i: u32) -> Word { \
                  if (is_true(i)) { return load_a(at_a(rank(i))); } return load_b(at_b(i)); }\n";
    let (name, body) = if base.is_some() { ("expand", choose) } else { ("expand_in", keep) };
    let mut kernel = Kernel::new(name, body, to.buffer)
        .with("", RANK)
        .words("words", &bits.words)
        .words("before", &bits.before)
        .read("a", source)?;
    if let Some(base) = base {
        kernel = kernel.read("b", base)?;
    }
    kernel.to(to)
}

/// `to` takes the true places of `from` in order.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn compress(to: View<'_>, from: View<'_>, bits: &Bits) -> Result<()> {
    let body = "fn keep(i: u32) -> bool { return is_true(i); }\n\
                fn place(i: u32) -> u32 { return at_to(rank(i)); }\n\
                fn value(i: u32) -> Word { return load_a(at_a(i)); }\n";
    let kernel = Kernel::new("compress", body, to.buffer)
        .with("", RANK)
        .words("words", &bits.words)
        .words("before", &bits.before)
        .read("a", from)?;
    kernel.put(to, bits.len)
}
