//! Calls are recorded by the thread that makes them, and submitted together when its scope ends.
//!
//! Kernels that check something write to the batch's status instead of failing: its first word says
//! that some check has failed, after which no kernel writes anything, and each check has a word for
//! the first position that is wrong. So a call is one submission, and whatever a failed call would
//! have written stays as it was.

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

/// A check that found nothing wrong.
const FINE: u32 = u32::MAX;

/// What went wrong, and after which [`mark`].
#[derive(Debug)]
pub struct Failed {
    /// The last mark that was set before.
    pub mark: usize,
    /// What.
    pub error: Box<Error>,
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        *failed.error
    }
}

/// Says what is wrong, given the first position that is.
pub(crate) type Explain = Box<dyn FnOnce(usize) -> Error>;

struct Check {
    mark: usize,
    explain: Explain,
    /// Bytes that `explain` keeps.
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
        /// Where its parameters lie in the arena, in words.
        params: (usize, usize),
        groups: (u32, u32),
    },
    /// Words of the arena, to the beginning of a buffer.
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
    /// The parameters of all commands, and what is stored.
    arena: Vec<u32>,
    checks: Vec<Check>,
    /// Buffers that nobody holds any more, for commands that come later.
    retired: Vec<wgpu::Buffer>,
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static MARK: Cell<usize> = const { Cell::new(0) };
    static BATCH: RefCell<Option<Batch>> = const { RefCell::new(None) };
}

/// Checks, and bytes that they keep to explain themselves, from which a program is submitted in parts.
const MANY_CHECKS: usize = 1000;
const MANY_BYTES: usize = 64 << 20;

/// Says what is recorded from now on, for [`Failed`]. Submits what was recorded until now if it checks
/// much.
///
/// # Errors
/// What the device has found then.
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

/// Leaves the scope also when it unwinds.
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

/// Runs `work` and submits what it has recorded; scopes inside of another are part of it.
///
/// # Errors
/// Those of `work`, after which nothing is submitted, or what the device has found.
pub fn scope<R>(work: impl FnOnce() -> Result<R>) -> Result<R, Failed> {
    within(work, discard)
}

/// As [`scope`], for a program: what comes before a call that fails is done.
///
/// # Errors
/// The first in the order of calls, whoever has found it.
pub fn program<R>(work: impl FnOnce() -> Result<R>) -> Result<R, Failed> {
    let mut earlier = None;
    let done = within(work, || earlier = flush(None).err());
    earlier.map_or(done, Err)
}

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

fn discard() {
    if let Some(batch) = take() {
        batch.retired.into_iter().for_each(|raw| batch.gpu.pool.give(raw));
    }
}

fn take() -> Option<Batch> {
    BATCH.try_with(|batch| batch.try_borrow_mut().ok().and_then(|mut batch| batch.take())).ok()?
}

/// Calls `work` with the batch of this thread for `gpu`, which is begun if there is none.
fn with<R>(gpu: &Arc<Gpu>, work: impl FnOnce(&mut Batch) -> Result<R>) -> Result<R> {
    let other = BATCH
        .with_borrow(|batch| batch.as_ref().is_some_and(|batch| !Arc::ptr_eq(&batch.gpu, gpu)));
    if other {
        // The device was lost, and part of the call is on the one that came after it.
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

/// Takes a buffer that nobody holds any more, if this thread's batch may still use it.
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

/// A buffer of just that size that this thread's batch has done with.
pub(crate) fn reuse(gpu: &Arc<Gpu>, size: u64) -> Option<wgpu::Buffer> {
    BATCH.with_borrow_mut(|batch| {
        let batch = batch.as_mut().filter(|batch| Arc::ptr_eq(&batch.gpu, gpu))?;
        let at = batch.retired.iter().position(|raw| raw.size() == size)?;
        Some(batch.retired.swap_remove(at))
    })
}

impl Batch {
    /// Room for `words` at an offset that a binding may have.
    fn reserve(&mut self, words: &[u32]) -> (usize, usize) {
        let step = self.gpu.limits.min_uniform_buffer_offset_alignment.max(4) as usize / 4;
        let from = self.arena.len().next_multiple_of(step);
        self.arena.resize(from, 0);
        self.arena.extend_from_slice(words);
        (from, words.len())
    }
}

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

/// The number of a new check, for its kernel.
pub(crate) fn check(gpu: &Arc<Gpu>, explain: Explain, keeps: usize) -> Result<u32> {
    with(gpu, |batch| {
        batch.checks.push(Check { mark: MARK.get(), explain, keeps });
        Ok(batch.checks.len() as u32)
    })
}

/// Bytes that are to be read: of which buffer, from where on, and how many.
type Wanted<'a> = (&'a Buffer, usize, usize);

/// Submits what was recorded; waits for the checks, and for the bytes that are asked for.
fn flush(wanted: Option<Wanted<'_>>) -> Result<Vec<u8>, Failed> {
    let Some(mut batch) = take() else { return Ok(Vec::new()) };
    let failed = |error: Error| Failed { mark: MARK.get(), error: error.into() };
    let gpu = batch.gpu.clone();
    if batch.commands.is_empty() && wanted.is_none() {
        batch.retired.into_iter().for_each(|raw| gpu.pool.give(raw));
        return Ok(Vec::new());
    }
    gpu.expect_alive().map_err(failed)?;
    let read = batch.submit(wanted).map_err(failed)?;
    let Batch { checks, retired, .. } = batch;
    retired.into_iter().for_each(|raw| gpu.pool.give(raw));
    let Some((status, bytes)) = read else { return Ok(Vec::new()) };
    for (check, first) in checks.into_iter().zip(status) {
        if first != FINE {
            let error = (check.explain)(first as usize).into();
            // It may pass through a scope, as an error of what it has recorded since.
            MARK.set(check.mark);
            return Err(Failed { mark: check.mark, error });
        }
    }
    Ok(bytes)
}
