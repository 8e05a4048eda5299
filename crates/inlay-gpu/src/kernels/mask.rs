//! Kernels with a mask. The mask is packed into a bitmap with prefix sums of its popcounts, which
//! then serve to expand or compress.

use inlay_core::{DType, Result};

use super::sums::exclusive;
use super::{Explain, expect};
use crate::View;
use crate::layout::{count, is_dense};
use crate::memory::Buffer;
use crate::shader::{Access, Kernel, Wgsl, wgsl, wgsl_file};

/// A mask as a bitmap in row-major order, with prefix sums.
pub struct Bits {
    /// The bitmap, with 32 elements per word.
    words: Buffer,
    /// The number of true elements before each word, followed by their total.
    before: Buffer,
    len: u32,
}

impl Bits {
    /// Packs a mask of dtype bool.
    ///
    /// # Errors
    /// The dtype is not bool, or the device is lost or refuses the call.
    pub fn read(mask: View<'_>) -> Result<Self> {
        expect::dtype("mask", "mask", mask, DType::Bool)?;
        let len = count(mask.layout.numel())?;
        let words = len.div_ceil(32);
        let room = |words: u32| Buffer::on(mask.buffer.gpu(), 4 * words as usize);
        let bits = Bits { words: room(words)?, before: room(words + 1)?, len };
        Kernel::new("pack", wgsl_file!("pack.wgsl"), mask.buffer)
            .constant("DENSE", is_dense(mask.layout, 1).into())
            .params(&[len, (mask.layout.offset() / 4) as u32])
            .read("a", mask)?
            .operand("words", &bits.words, 4, Access::Write)
            .operand("before", &bits.before, 4, Access::Write)
            .run(words + 1)?;
        exclusive(&bits.before, words + 1)?;
        Ok(bits)
    }

    /// Returns the number of true elements. Submits the batch and waits for the device.
    ///
    /// # Errors
    /// A check of the batch has failed, or the device is lost.
    pub fn ones(&self) -> Result<usize> {
        let last = 4 * self.len.div_ceil(32) as usize;
        let bytes = crate::batch::download(&self.before, last, 4)?;
        Ok(bytes.iter().rev().fold(0, |ones, byte| ones << 8 | usize::from(*byte)))
    }

    /// Records a check that at most `have` elements are true. `explain` gets their number.
    ///
    /// # Errors
    /// The device is lost or refuses the call.
    pub fn expect_at_most(&self, have: usize, explain: Explain) -> Result<()> {
        let have = u32::try_from(have).unwrap_or(u32::MAX);
        Kernel::new("enough", wgsl_file!("enough.wgsl"), &self.before)
            .checks(explain, 0)?
            .params(&[self.len.div_ceil(32), have])
            .words("before", &self.before)
            .run(1)
    }

    /// Starts a kernel whose body reads the mask. `is_selected` is true for the first `most` true
    /// elements.
    fn kernel<'a>(
        &'a self,
        name: &'static str,
        body: &'static Wgsl,
        to: View<'_>,
        most: usize,
    ) -> Result<Kernel<'a>> {
        Ok(Kernel::new(name, body, to.buffer)
            .with(wgsl_file!("rank.wgsl"))
            .params(&[count(most)?])
            .words("words", &self.words)
            .words("before", &self.before))
    }
}

/// Computes `to = base`, where the k-th true element is replaced by the k-th element of `source`,
/// in row-major order. Without a base, `to` is changed in place. True elements past the end of the
/// source count as false.
///
/// # Errors
/// The views don't fit, or the device is lost or refuses the call.
pub fn expand<'a>(
    to: View<'a>,
    base: Option<View<'a>>,
    bits: &'a Bits,
    source: View<'a>,
) -> Result<()> {
    expect::elements("expand", "to", to.layout.numel(), bits.len as usize)?;
    expect::dtype("expand", "source", source, to.dtype)?;
    let (name, body) = match base {
        None => (
            "expand_in",
            wgsl!(
                "fn keep(i: u32) -> bool { return is_selected(i); }\n",
                "fn value(i: u32) -> Stored { return load_a(at_a(rank(i))); }\n"
            ),
        ),
        Some(_) => (
            "expand",
            wgsl!(
                "fn value(i: u32) -> Stored { ",
                "if (is_selected(i)) { return load_a(at_a(rank(i))); } return load_b(at_b(i)); }\n"
            ),
        ),
    };
    let kernel = bits.kernel(name, body, to, source.layout.numel())?.read("a", source)?;
    match base {
        None => kernel.partial().to(to),
        Some(base) => {
            expect::like(name, "base", base, to)?;
            kernel.read("b", base)?.to(to)
        }
    }
}

/// Writes the true elements of `from` to `to`, in order, until `to` is full.
///
/// # Errors
/// The views don't fit, or the device is lost or refuses the call.
pub fn compress<'a>(to: View<'a>, from: View<'a>, bits: &'a Bits) -> Result<()> {
    expect::elements("compress", "from", from.layout.numel(), bits.len as usize)?;
    expect::dtype("compress", "from", from, to.dtype)?;
    let body = wgsl!(
        "fn keep(i: u32) -> bool { return is_selected(i); }\n",
        "fn address(i: u32) -> u32 { return at_to(rank(i)); }\n",
        "fn value(i: u32) -> Stored { return load_a(at_a(i)); }\n"
    );
    let kernel = bits.kernel("compress", body, to, to.layout.numel())?.read("a", from)?;
    kernel.partial().put(to, bits.len)
}
