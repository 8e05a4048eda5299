//! Sums of all words before each.

use inlay_core::Result;

use crate::memory::Buffer;
use crate::shader::{Access, Kernel};

/// Words that one thread adds.
const CHUNK: u32 = 64;

/// Each of the first `count` words becomes the sum of those before it.
pub(super) fn exclusive(words: &Buffer, count: u32) -> Result<()> {
    if count <= CHUNK {
        return spread(words, words, count, false);
    }
    let chunks = count.div_ceil(CHUNK);
    let sums = Buffer::on(words.gpu(), 4 * chunks as usize)?;
    Kernel::new("chunk_sums", include_str!("chunk_sums.wgsl"), words)
        .constant("CHUNK", CHUNK)
        .params(&[count])
        .words("a", words)
        .operand("sums", &sums, 4, Access::Write)
        .run(chunks)?;
    exclusive(&sums, chunks)?;
    spread(words, &sums, count, true)
}

/// Each word becomes the sum of those before it in its chunk and, with `sums`, of the chunks before.
fn spread(words: &Buffer, sums: &Buffer, count: u32, whole: bool) -> Result<()> {
    let mut kernel = Kernel::new("spread", include_str!("spread.wgsl"), words)
        .constant("CHUNK", CHUNK)
        .params(&[count])
        .operand("a", words, 4, Access::Write);
    kernel = match whole {
        true => kernel.words("sums", sums),
        false => kernel.with("alone", "fn load_sums(i: u32) -> u32 { return 0u; }\n"),
    };
    kernel.run(count.div_ceil(CHUNK))
}
