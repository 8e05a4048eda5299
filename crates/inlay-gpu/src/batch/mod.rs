//! Calls are recorded by the thread that makes them, and submitted together when its scope ends.
//!
//! Kernels that check something write to the batch's status instead of failing: its first word says
//! that some check has failed, after which no kernel writes anything, and each check has a word for
//! the first position that is wrong. So a call is one submission, and whatever a failed call would
//! have written stays as it was.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use inlay_core::{Error, Result};

use crate::device::Gpu;
use crate::memory::Buffer;
use crate::pipeline::Pipeline;

/// A check that found nothing wrong.
const FINE: u32 = u32::MAX;

/// Bytes up to which what is stored travels with the batch.
const SMALL_STORE: usize = 64 << 10;

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

/// Submits what was recorded; waits for the checks, and for the bytes that are asked for.
pub(crate) fn flush(wanted: Option<(&Buffer, usize, usize)>) -> Result<Vec<u8>, Failed> {
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

impl Batch {
    /// Encodes and submits; if something is to be read, returns the checks' words and the bytes.
    fn submit(
        &mut self,
        wanted: Option<(&Buffer, usize, usize)>,
    ) -> Result<Option<(Vec<u32>, Vec<u8>)>> {
        let gpu = self.gpu.clone();
        // Kernels read the first four words at once.
        let mut status = vec![FINE; (self.checks.len() + 1).max(4)];
        status[0] = 0;
        let status_bytes = 4 * status.len() as u64;
        let (status_at, _) = self.reserve(&status);
        let arena_bytes: Vec<u8> = self.arena.iter().flat_map(|word| word.to_le_bytes()).collect();
        let arena = gpu.pool.take(&gpu, arena_bytes.len())?;
        let status = gpu.pool.take(&gpu, status_bytes as usize)?;
        let want = wanted.map_or(0, |(_, _, len)| len.next_multiple_of(4) as u64);
        let reads = !self.checks.is_empty() || want > 0;
        let staging = match reads {
            true => Some(gpu.pool.staging(&gpu, status_bytes + want)?),
            false => None,
        };
        let submitted = gpu.guarded(arena_bytes.len(), || {
            gpu.queue.write_buffer(&arena, 0, &arena_bytes);
            let mut encoder = gpu.device.create_command_encoder(&Default::default());
            encoder.copy_buffer_to_buffer(&arena, 4 * status_at as u64, &status, 0, status_bytes);
            self.encode(&mut encoder, &arena, (&status, status_bytes));
            if let Some(staging) = &staging {
                encoder.copy_buffer_to_buffer(&status, 0, staging, 0, status_bytes);
                if let Some((from, at, _)) = wanted {
                    let (from, at) = (from.raw(), at as u64);
                    encoder.copy_buffer_to_buffer(from, at, staging, status_bytes, want);
                }
            }
            gpu.queue.submit([encoder.finish()])
        })?;
        gpu.pool.submissions.fetch_add(1, Ordering::Relaxed);
        gpu.pool.give(arena);
        gpu.pool.give(status);
        let Some(staging) = staging else { return Ok(None) };
        let bytes = gpu.read_back(&staging, status_bytes + want, submitted)?;
        gpu.pool.give_staging(staging);
        let (words, bytes) = bytes.split_at(status_bytes as usize);
        let (words, _) = words.as_chunks::<4>();
        let checks = words.iter().skip(1).map(|word| u32::from_le_bytes(*word)).collect();
        Ok(Some((checks, bytes.to_vec())))
    }

    fn encode(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        arena: &wgpu::Buffer,
        (status, status_bytes): (&wgpu::Buffer, u64),
    ) {
        let mut commands = self.commands.iter().peekable();
        while let Some(command) = commands.next() {
            match command {
                Command::Store { from, to, bytes } => {
                    encoder.copy_buffer_to_buffer(arena, 4 * *from as u64, to, 0, *bytes);
                    continue;
                }
                Command::Clear { to, bytes } => {
                    encoder.clear_buffer(to, 0, Some(*bytes));
                    continue;
                }
                Command::Copy { from, to, bytes } => {
                    encoder.copy_buffer_to_buffer(&from.0, from.1, &to.0, to.1, *bytes);
                    continue;
                }
                Command::Dispatch { .. } => {}
            }
            // Dispatches that follow each other share a pass.
            let mut pass = encoder.begin_compute_pass(&Default::default());
            let mut next = Some(command);
            while let Some(Command::Dispatch { pipeline, bindings, params, groups }) = next {
                // Those that only ask whether something has failed see its first words.
                let seen = if pipeline.checks { status_bytes } else { 16 };
                let own = [(status, 0, seen), (arena, 4 * params.0 as u64, 4 * params.1 as u64)];
                let bound = bindings.iter().map(|part| (&part.raw, part.offset, part.size));
                let entries: Vec<wgpu::BindGroupEntry<'_>> = own
                    .into_iter()
                    .chain(bound)
                    .zip(0..)
                    .map(|((buffer, offset, size), binding)| {
                        let size = std::num::NonZeroU64::new(size);
                        let part = wgpu::BufferBinding { buffer, offset, size };
                        wgpu::BindGroupEntry {
                            binding,
                            resource: wgpu::BindingResource::Buffer(part),
                        }
                    })
                    .collect();
                let group = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: None,
                    layout: &pipeline.layout,
                    entries: &entries,
                });
                pass.set_pipeline(&pipeline.pipeline);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(groups.0, groups.1, 1);
                next = commands.next_if(|next| matches!(next, Command::Dispatch { .. }));
            }
        }
    }
}

/// Waits until all that was submitted, by any thread, is done; if a device is open.
///
/// # Errors
/// A device that was lost.
pub fn synchronize() -> Result<()> {
    let Some(gpu) = crate::device::opened() else { return Ok(()) };
    gpu.expect_alive()?;
    match gpu.device.poll(wgpu::PollType::wait_indefinitely()) {
        Ok(_) => Ok(()),
        Err(error) => Err(gpu.lost(&error.to_string())),
    }
}

impl Gpu {
    /// The error of a device that was just lost.
    fn lost(&self, reason: &str) -> Error {
        self.lose();
        let name = &self.adapter().name;
        Error::DeviceLost { reason: format!("{name} was lost: {reason}") }
    }

    /// Waits for a submission and reads what it has copied to `staging`.
    fn read_back(
        &self,
        staging: &wgpu::Buffer,
        len: u64,
        submitted: wgpu::SubmissionIndex,
    ) -> Result<Vec<u8>> {
        let lost = |reason: String| self.lost(&reason);
        let part = staging.slice(..len);
        let mapped = Arc::new(std::sync::OnceLock::new());
        let told = mapped.clone();
        part.map_async(wgpu::MapMode::Read, move |result| _ = told.set(result));
        let until = wgpu::PollType::Wait { submission_index: Some(submitted), timeout: None };
        self.device.poll(until).map_err(|error| lost(error.to_string()))?;
        // Another thread that waits may be the one that is told.
        while mapped.get().is_none() {
            self.device.poll(wgpu::PollType::Poll).map_err(|error| lost(error.to_string()))?;
            std::thread::yield_now();
        }
        if let Some(Err(error)) = mapped.get() {
            return Err(lost(error.to_string()));
        }
        let bytes = part.get_mapped_range().map_err(|error| lost(error.to_string()))?.to_vec();
        staging.unmap();
        Ok(bytes)
    }
}
