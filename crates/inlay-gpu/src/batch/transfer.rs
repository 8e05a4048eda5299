//! Bytes to buffers, from them, and between them, in the order of the batch.

use inlay_core::Result;

use super::{BATCH, Command, flush, with};
use crate::memory::Buffer;

/// Bytes up to which what is stored travels with the batch.
const SMALL_STORE: usize = 64 << 10;

/// Sets the first `bytes` of a buffer, a multiple of 4, to 0.
pub(crate) fn clear(to: &Buffer, bytes: u64) -> Result<()> {
    with(to.gpu(), |batch| {
        batch.commands.push(Command::Clear { to: to.raw().clone(), bytes });
        Ok(())
    })
}

/// Copies runs of `bytes` between two buffers, from the first offset of each to the second; all are
/// multiples of 4. Unless something is to be checked before: then a kernel must do it, and the answer
/// is false.
pub(crate) fn copy_runs(
    from: &Buffer,
    to: &Buffer,
    runs: &[(u64, u64)],
    bytes: u64,
) -> Result<bool> {
    from.expect_on(to.gpu())?;
    with(to.gpu(), |batch| {
        if !batch.checks.is_empty() {
            return Ok(false);
        }
        for (at_from, at_to) in runs {
            let (from, to) = ((from.raw().clone(), *at_from), (to.raw().clone(), *at_to));
            batch.commands.push(Command::Copy { from, to, bytes });
        }
        Ok(true)
    })
}

/// Writes bytes to the beginning of a fresh buffer.
pub(crate) fn upload(to: &Buffer, bytes: &[u8]) -> Result<()> {
    let gpu = to.gpu();
    gpu.expect_alive()?;
    if bytes.is_empty() {
        return Ok(());
    }
    let pending = BATCH.with_borrow(Option::is_some);
    let whole = bytes.len().next_multiple_of(4);
    if pending && bytes.len() <= SMALL_STORE {
        let mut words = vec![0u32; whole / 4];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(4)) {
            let mut padded = [0; 4];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u32::from_le_bytes(padded);
        }
        return with(gpu, |batch| {
            let (from, _) = batch.reserve(&words);
            let to = to.raw().clone();
            batch.commands.push(Command::Store { from, to, bytes: whole as u64 });
            Ok(())
        });
    }
    // What is written to the queue comes before the next submission, so that of the batch, which may
    // have used the buffer for something else, goes first.
    flush(None)?;
    gpu.guarded(bytes.len(), || {
        let aligned = bytes.len() / 4 * 4;
        gpu.queue.write_buffer(to.raw(), 0, &bytes[..aligned]);
        if aligned < bytes.len() {
            let mut last = [0; 4];
            last[..bytes.len() - aligned].copy_from_slice(&bytes[aligned..]);
            gpu.queue.write_buffer(to.raw(), aligned as u64, &last);
        }
        // What is written waits in memory of the host for the next submission.
        gpu.queue.submit([]);
    })
}

/// Bytes of a buffer from `offset` on, a multiple of 4, once all that was recorded is done.
pub(crate) fn download(from: &Buffer, offset: usize, len: usize) -> Result<Vec<u8>> {
    if len == 0 {
        return Ok(Vec::new());
    }
    // There may be nothing to submit but the copy itself.
    with(from.gpu(), |_| Ok(()))?;
    let mut bytes = flush(Some((from, offset, len)))?;
    bytes.truncate(len);
    Ok(bytes)
}
