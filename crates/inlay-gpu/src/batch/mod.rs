//! Batches: each thread records its commands and submits them together when its scope ends.
//!
//! The batch has a status buffer. A kernel that finds an error sets word 0 of the status. All later
//! kernels read word 0, and write nothing if it is set. Each check also has its own word, which
//! becomes the first wrong position. So a call needs one submission, and a failed call changes no
//! tensor.

mod submit;
mod transfer;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use inlay_core::{Error, Result};

use crate::device::Gpu;
use crate::memory::Buffer;
use crate::pipeline::Pipeline;

pub use submit::synchronize;
pub(crate) use transfer::{clear, copy_runs, download, upload};

/// The value of a check's status word if the check has found no error.
const FINE: u32 = u32::MAX;

/// An error, and the [`mark`] that was set when its call was recorded.
#[derive(Debug)]
pub struct Failed {
    /// The last mark before the call.
    pub mark: usize,
    /// The error.
    pub error: Box<Error>,
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        *failed.error
    }
}

/// Makes the error of a failed check from the first wrong position.
pub(crate) type Explain = Box<dyn FnOnce(usize) -> Error>;

struct Check {
    mark: usize,
    explain: Explain,
    /// Bytes that `explain` keeps alive.
    keeps: usize,
}

/// A part of a buffer that is bound to a kernel.
pub(crate) struct Binding {
    pub(crate) raw: wgpu::Buffer,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

enum Command {
    Dispatch {
        pipeline: Arc<Pipeline>,
        bindings: Vec<Binding>,
        /// The offset and the length of the kernel's parameters in the arena, in words.
        params: (usize, usize),
        groups: (u32, u32),
    },
    /// Copies words from the arena, starting at word `from`, to the beginning of a buffer.
    Store {
        from: usize,
        to: wgpu::Buffer,
        bytes: u64,
    },
    Clear {
        to: wgpu::Buffer,
        bytes: u64,
    },
    Copy {
        from: (wgpu::Buffer, u64),
        to: (wgpu::Buffer, u64),
        bytes: u64,
    },
}

struct Batch {
    gpu: Arc<Gpu>,
    commands: Vec<Command>,
    /// The parameters of all kernels, and the words that `Store` commands copy.
    arena: Vec<u32>,
    checks: Vec<Check>,
    /// Buffers whose last handle was dropped. Later commands of this batch may reuse them.
    retired: Vec<wgpu::Buffer>,
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static MARK: Cell<usize> = const { Cell::new(0) };
    static BATCH: RefCell<Option<Batch>> = const { RefCell::new(None) };
}

/// The number of checks at which [`mark`] submits the batch of a program.
const MANY_CHECKS: usize = 1000;

/// The number of bytes kept alive by checks at which [`mark`] submits the batch of a program.
const MANY_BYTES: usize = 64 << 20;

/// Sets the mark that [`Failed`] reports for the calls that are recorded from now on. If the batch
/// has many checks, or its checks keep much memory alive, the batch is submitted first.
///
/// # Errors
/// A check of that submission has failed.
pub fn mark(mark: usize) -> Result<()> {
    let full = BATCH.with_borrow(|batch| {
        let checks = batch.as_ref().map_or(&[][..], |batch| &batch.checks);
        let kept: usize = checks.iter().map(|check| check.keeps).sum();
        checks.len() >= MANY_CHECKS || kept > MANY_BYTES
    });
    if full {
        flush(None)?;
    }
    MARK.set(mark);
    Ok(())
}

/// A guard that counts nested scopes. Dropping it leaves the scope, also during unwinding.
struct Depth(usize);

impl Depth {
    fn enter() -> Self {
        Depth(DEPTH.replace(DEPTH.get() + 1))
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        DEPTH.set(self.0);
        if std::thread::panicking() && self.0 == 0 {
            discard();
        }
    }
}

/// Runs `work` and submits the commands that it records. A nested scope becomes part of the outer
/// scope.
///
/// # Errors
/// `work` has failed, and nothing was submitted; or a check has failed on the device.
pub fn scope<R>(work: impl FnOnce() -> Result<R>) -> Result<R, Failed> {
    within(work, discard)
}

/// Like [`scope`], for a program: if a call fails, the commands recorded before it are submitted.
///
/// # Errors
/// The error of the first call that failed, on the host or on the device.
pub fn program<R>(work: impl FnOnce() -> Result<R>) -> Result<R, Failed> {
    let mut earlier = None;
    let done = within(work, || earlier = flush(None).err());
    earlier.map_or(done, Err)
}

/// Runs `work` in a scope. Calls `failed` if this is the outermost scope and `work` fails.
fn within<R>(work: impl FnOnce() -> Result<R>, failed: impl FnOnce()) -> Result<R, Failed> {
    let depth = Depth::enter();
    let (outermost, result) = (depth.0 == 0, work());
    drop(depth);
    match result {
        Ok(value) if outermost => flush(None).map(|_| value),
        Ok(value) => Ok(value),
        Err(error) => {
            let mark = MARK.get();
            if outermost {
                failed();
            }
            Err(Failed { mark, error: error.into() })
        }
    }
}

/// Drops the batch of this thread.
fn discard() {
    drop(take());
}

/// Takes the batch of this thread.
fn take() -> Option<Batch> {
    BATCH.try_with(|batch| batch.try_borrow_mut().ok().and_then(|mut batch| batch.take())).ok()?
}

/// Calls `work` with the batch of this thread for `gpu`. Starts a new batch if there is none.
fn with<R>(gpu: &Arc<Gpu>, work: impl FnOnce(&mut Batch) -> Result<R>) -> Result<R> {
    let other = BATCH
        .with_borrow(|batch| batch.as_ref().is_some_and(|batch| !Arc::ptr_eq(&batch.gpu, gpu)));
    if other {
        // There are two devices only if the first one was lost. Either `gpu` is the lost device,
        // which is an error, or the recorded batch belongs to the lost device.
        gpu.expect_alive()?;
        discard();
    }
    BATCH.with_borrow_mut(|batch| {
        work(batch.get_or_insert_with(|| Batch {
            gpu: gpu.clone(),
            commands: Vec::new(),
            arena: Vec::new(),
            checks: Vec::new(),
            retired: Vec::new(),
        }))
    })
}

/// Takes a buffer whose last handle was dropped. If this thread has a batch on `gpu`, the batch
/// keeps the buffer; otherwise the buffer is returned.
pub(crate) fn retire(gpu: &Arc<Gpu>, raw: &wgpu::Buffer) -> Option<wgpu::Buffer> {
    let kept = BATCH.try_with(|batch| {
        let mut batch = batch.try_borrow_mut().ok()?;
        match batch.as_mut() {
            Some(batch) if Arc::ptr_eq(&batch.gpu, gpu) => {
                batch.retired.push(raw.clone());
                None
            }
            _ => Some(raw.clone()),
        }
    });
    kept.ok().flatten()
}

/// Returns a retired buffer of exactly `size` bytes from this thread's batch. Commands run in
/// order, so later commands may overwrite it.
pub(crate) fn reuse(gpu: &Arc<Gpu>, size: u64) -> Option<wgpu::Buffer> {
    BATCH.with_borrow_mut(|batch| {
        let batch = batch.as_mut().filter(|batch| Arc::ptr_eq(&batch.gpu, gpu))?;
        let at = batch.retired.iter().position(|raw| raw.size() == size)?;
        Some(batch.retired.swap_remove(at))
    })
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.retired.drain(..).for_each(|raw| self.gpu.pool.give(raw));
    }
}

impl Batch {
    /// Appends words to the arena, at an offset that is aligned for a binding. Returns the offset
    /// and the length in words.
    fn reserve(&mut self, words: &[u32]) -> (usize, usize) {
        let step = self.gpu.limits.min_uniform_buffer_offset_alignment.max(4) as usize / 4;
        let from = self.arena.len().next_multiple_of(step);
        self.arena.resize(from, 0);
        self.arena.extend_from_slice(words);
        (from, words.len())
    }
}

/// Records the launch of a kernel.
pub(crate) fn dispatch(
    gpu: &Arc<Gpu>,
    pipeline: Arc<Pipeline>,
    bindings: Vec<Binding>,
    params: &[u32],
    groups: (u32, u32),
) -> Result<()> {
    with(gpu, |batch| {
        let params = batch.reserve(params);
        batch.commands.push(Command::Dispatch { pipeline, bindings, params, groups });
        Ok(())
    })
}

/// Records a check, and returns the number of its status word. `keeps` is the number of bytes that
/// `explain` keeps alive.
pub(crate) fn check(gpu: &Arc<Gpu>, explain: Explain, keeps: usize) -> Result<u32> {
    with(gpu, |batch| {
        batch.checks.push(Check { mark: MARK.get(), explain, keeps });
        Ok(batch.checks.len() as u32)
    })
}

/// Bytes that the host wants to read: the buffer, the offset, and the number of bytes.
type Wanted<'a> = (&'a Buffer, usize, usize);

/// Submits the batch of this thread. Waits for the device if there are checks or bytes to read.
/// Returns the bytes that were read.
fn flush(wanted: Option<Wanted<'_>>) -> Result<Vec<u8>, Failed> {
    let Some(mut batch) = take() else { return Ok(Vec::new()) };
    let failed = |error: Error| Failed { mark: MARK.get(), error: error.into() };
    let gpu = batch.gpu.clone();
    if batch.commands.is_empty() && wanted.is_none() {
        return Ok(Vec::new());
    }
    gpu.expect_alive().map_err(failed)?;
    let read = batch.submit(wanted).map_err(failed)?;
    let checks = std::mem::take(&mut batch.checks);
    drop(batch);
    let Some((status, bytes)) = read else { return Ok(Vec::new()) };
    for (check, first) in checks.into_iter().zip(status) {
        if first != FINE {
            let error = (check.explain)(first as usize).into();
            // If the error is returned through an outer scope, `within` reads this mark.
            MARK.set(check.mark);
            return Err(Failed { mark: check.mark, error });
        }
    }
    Ok(bytes)
}
