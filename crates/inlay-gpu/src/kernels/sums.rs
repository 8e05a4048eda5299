//! Exclusive prefix sums of words.

use inlay_core::Result;

use crate::memory::Buffer;
use crate::shader::{Access, Kernel, wgsl, wgsl_file};

/// The number of words that one thread adds.
const CHUNK: u32 = 64;

/// Replaces each of the first `count` words by the sum of the words before it.
pub(super) fn exclusive(words: &Buffer, count: u32) -> Result<()> {
    let chunks = count.div_ceil(CHUNK);
    if chunks <= 1 {
        return spread(words, None, count);
    }
    let sums = Buffer::on(words.gpu(), 4 * chunks as usize)?;
    Kernel::new("chunk_sums", wgsl_file!("chunk_sums.wgsl"), words)
        .constant("CHUNK", CHUNK)
        .params(&[count])
        .words("a", words)
        .operand("sums", &sums, 4, Access::Write)
        .run(chunks)?;
    exclusive(&sums, chunks)?;
    spread(words, Some(&sums), count)
}

/// Replaces each word by the sum of the words before it in its chunk, plus the entry of `sums` for
/// the chunk: the sum of all earlier chunks.
fn spread(words: &Buffer, sums: Option<&Buffer>, count: u32) -> Result<()> {
    let kernel = Kernel::new("spread", wgsl_file!("spread.wgsl"), words)
        .constant("CHUNK", CHUNK)
        .params(&[count])
        .operand("a", words, 4, Access::Write);
    match sums {
        Some(sums) => kernel.words("sums", sums),
        None => kernel.with(wgsl!("fn load_sums(i: u32) -> u32 { return 0u; }\n")),
    }
    .run(count.div_ceil(CHUNK))
}
