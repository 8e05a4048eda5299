//! Batches: each thread records its commands and submits them together when its scope ends.
//!
//! A kernel that checks something writes to the status of the batch. Word 0 of the status says that a
//! check has failed; all later kernels read it and then write nothing. Each check has a word for the
//! first position that is wrong. So a call needs one submission, and a failed call changes no tensor.

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

/// The word of a check that found nothing wrong.
const FINE: u32 = u32::MAX;

/// An error, and the [`mark`] at which its call was recorded.
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

/// Makes the error of a failed check, given the first position that is wrong.
pub(crate) type Explain = Box<dyn FnOnce(usize) -> Error>;

struct Check {
    mark: usize,
    explain: Explain,
    /// Bytes that `explain` keeps alive.
    keeps: usize,
}

/// A part of a buffer that a kernel sees.
pub(crate) struct Binding {
    pub(crate) raw: wgpu::Buffer,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

enum Command {
    Dispatch {
        pipeline: Arc<Pipeline>,
        bindings: Vec<Binding>,
        /// The offset and the length of its parameters in the arena, in words.
        params: (usize, usize),
        groups: (u32, u32),
    },
    /// Copies words of the arena to the beginning of a buffer.
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
    /// The parameters of all commands, and the words that they store.
    arena: Vec<u32>,
    checks: Vec<Check>,
    /// Buffers without a handle, which later commands of the batch may use.
    retired: Vec<wgpu::Buffer>,
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static MARK: Cell<usize> = const { Cell::new(0) };
    static BATCH: RefCell<Option<Batch>> = const { RefCell::new(None) };
}

/// A program is submitted in parts of so many checks.
const MANY_CHECKS: usize = 1000;

/// A program is submitted in parts when its checks keep so many bytes alive.
const MANY_BYTES: usize = 64 << 20;

/// Sets the mark of the calls that are recorded from now on, for [`Failed`]. Submits the commands
/// recorded so far if they have many checks.
///
/// # Errors
/// A check that failed in that submission.
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

/// The depth of nested scopes. Dropping it leaves the scope, also on unwinding.
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

/// Runs `work` and submits the commands that it records. A scope inside of another is part of it.
///
/// # Errors
/// An error of `work`, after which nothing is submitted, or a check that failed on the device.
pub fn scope<R>(work: impl FnOnce() -> Result<R>) -> Result<R, Failed> {
    within(work, discard)
}

/// As [`scope`], for a program: if a call fails, the commands recorded before it are submitted.
///
/// # Errors
/// The error of the first call that failed, on the host or on the device.
pub fn program<R>(work: impl FnOnce() -> Result<R>) -> Result<R, Failed> {
    let mut earlier = None;
    let done = within(work, || earlier = flush(None).err());
    earlier.map_or(done, Err)
}

/// Runs `work` in a scope, and `failed` if the outermost scope fails.
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

/// Calls `work` with the batch of this thread for `gpu`. A new batch is begun if there is none.
fn with<R>(gpu: &Arc<Gpu>, work: impl FnOnce(&mut Batch) -> Result<R>) -> Result<R> {
    let other = BATCH
        .with_borrow(|batch| batch.as_ref().is_some_and(|batch| !Arc::ptr_eq(&batch.gpu, gpu)));
    if other {
        // The device was lost, and `gpu` was opened after it.
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

/// Keeps a buffer without a handle for this thread's batch if there is one, else returns it.
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

/// A buffer of exactly that size that earlier commands of this thread's batch no longer need.
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
    /// Appends words to the arena, at an offset that a binding can have. Returns offset and length.
    fn reserve(&mut self, words: &[u32]) -> (usize, usize) {
        let step = self.gpu.limits.min_uniform_buffer_offset_alignment.max(4) as usize / 4;
        let from = self.arena.len().next_multiple_of(step);
        self.arena.resize(from, 0);
        self.arena.extend_from_slice(words);
        (from, words.len())
    }
}

/// Records a launch of a kernel.
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

/// Records a check, and returns its word of the status.
pub(crate) fn check(gpu: &Arc<Gpu>, explain: Explain, keeps: usize) -> Result<u32> {
    with(gpu, |batch| {
        batch.checks.push(Check { mark: MARK.get(), explain, keeps });
        Ok(batch.checks.len() as u32)
    })
}

/// Bytes to read: the buffer, the offset, and the number of bytes.
type Wanted<'a> = (&'a Buffer, usize, usize);

/// Submits the batch of this thread. Waits if there are checks or bytes to read.
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
            // The error may leave an outer scope later, which then reads the mark.
            MARK.set(check.mark);
            return Err(Failed { mark: check.mark, error });
        }
    }
    Ok(bytes)
}
