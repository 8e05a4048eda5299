//! Transfers to, from and between buffers. They are ordered with the commands of the batch.

use inlay_core::Result;

use super::{BATCH, Command, flush, with};
use crate::memory::Buffer;

/// The largest upload that is copied to the arena of the batch, in bytes.
const SMALL_STORE: usize = 64 << 10;

/// Sets the first `bytes` bytes of a buffer to 0. `bytes` is a multiple of 4.
pub(crate) fn clear(to: &Buffer, bytes: u64) -> Result<()> {
    with(to.gpu(), |batch| {
        batch.commands.push(Command::Clear { to: to.raw().clone(), bytes });
        Ok(())
    })
}

/// Copies runs of `bytes` bytes between two buffers. `runs` has the offset of each run in `from`
/// and in `to`. All numbers are multiples of 4.
///
/// If the batch has checks, nothing is copied and the result is false: a copy command can't depend
/// on the result of a check, but a kernel can.
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

/// Writes bytes to the beginning of a new buffer.
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
    // A write to the queue takes effect before the next submission. Recorded commands may still use
    // the memory of the buffer for an earlier tensor, so the batch is submitted first.
    flush(None)?;
    gpu.guarded(bytes.len(), || {
        let aligned = bytes.len() / 4 * 4;
        gpu.queue.write_buffer(to.raw(), 0, &bytes[..aligned]);
        if aligned < bytes.len() {
            let mut last = [0; 4];
            last[..bytes.len() - aligned].copy_from_slice(&bytes[aligned..]);
            gpu.queue.write_buffer(to.raw(), aligned as u64, &last);
        }
        // The queue keeps the bytes in host memory until the next submission, so an empty one
        // follows.
        gpu.queue.submit([]);
    })
}

/// Submits the batch, waits for it, and returns `len` bytes of a buffer. `offset` is a multiple of
/// 4.
pub(crate) fn download(from: &Buffer, offset: usize, len: usize) -> Result<Vec<u8>> {
    if len == 0 {
        return Ok(Vec::new());
    }
    // `flush` does nothing without a batch, so an empty one is created if there is none.
    with(from.gpu(), |_| Ok(()))?;
    let mut bytes = flush(Some((from, offset, len)))?;
    bytes.truncate(len);
    Ok(bytes)
}
