//! Buffers on the device: shared, counted by version as those of the CPU, and recycled.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use inlay_core::{Error, Result, Versions};

use crate::batch;
use crate::device::{Gpu, current, locked, opened};

/// A handle to bytes on the device; clones share them.
#[derive(Clone)]
pub struct Buffer(Arc<Shared>);

struct Shared {
    raw: wgpu::Buffer,
    /// The bytes that were asked for; `raw` has more.
    len: usize,
    versions: Versions,
    gpu: Arc<Gpu>,
}

/// Buffers that wait to be used again, by their size.
#[derive(Default)]
pub(crate) struct Pool {
    free: Mutex<Waiting>,
    /// Buffers that the host reads.
    staging: Mutex<Vec<wgpu::Buffer>>,
    reused: AtomicU64,
    made: AtomicU64,
    pub(crate) submissions: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    by_size: HashMap<u64, Vec<wgpu::Buffer>>,
    bytes: u64,
}

/// Bytes that wait at most: a quarter of a small card's memory.
const KEEP: u64 = 512 << 20;

/// What the device's pool, and the device, have done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStats {
    /// Bytes that wait to be used again.
    pub cached: u64,
    /// Buffers that were used again.
    pub reused: u64,
    /// Buffers that were made.
    pub made: u64,
    /// Batches that were submitted.
    pub submissions: u64,
}

/// What the pool of the device has done, if one is open.
pub fn pool_stats() -> Option<PoolStats> {
    let gpu = opened()?;
    let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Pool { free, reused, made, submissions, .. } = &gpu.pool;
    let cached = locked(free).bytes;
    let (reused, made, submissions) = (get(reused), get(made), get(submissions));
    Some(PoolStats { cached, reused, made, submissions })
}

/// Gives what waits back to the device, if one is open.
pub fn empty_pool() {
    if let Some(gpu) = opened() {
        *locked(&gpu.pool.free) = Waiting::default();
        locked(&gpu.pool.staging).clear();
    }
}

/// What buffers are used for: by kernels, as both ends of copies, and for parameters.
const USAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
    .union(wgpu::BufferUsages::UNIFORM)
    .union(wgpu::BufferUsages::COPY_SRC)
    .union(wgpu::BufferUsages::COPY_DST);

/// The size that a buffer of `len` bytes gets: few different ones, so that they meet again. Whole
/// 16-byte elements, and at most an eighth more than asked for.
fn size_of(len: usize) -> u64 {
    let len = (len as u64).max(256);
    let step = (len.next_power_of_two() / 8).max(256);
    len.div_ceil(step) * step
}

impl Pool {
    pub(crate) fn take(&self, gpu: &Gpu, len: usize) -> Result<wgpu::Buffer> {
        let size = size_of(len);
        {
            let mut free = locked(&self.free);
            if let Some(raw) = free.by_size.get_mut(&size).and_then(Vec::pop) {
                free.bytes -= size;
                self.reused.fetch_add(1, Ordering::Relaxed);
                return Ok(raw);
            }
        }
        gpu.expect_alive()?;
        // No more than a buffer can have; the last eighth may not fit.
        let most = gpu.limits.max_buffer_size / 16 * 16;
        let size = size.min(most);
        if size < len as u64 {
            return Err(Error::OutOfMemory { bytes: len });
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        let wanted =
            wgpu::BufferDescriptor { label: None, size, usage: USAGE, mapped_at_creation: false };
        let make = || gpu.guarded(len, || gpu.device.create_buffer(&wanted));
        make().or_else(|error| {
            // What waits may be what is missing.
            let waiting = std::mem::take(&mut *locked(&self.free));
            if waiting.bytes == 0 {
                return Err(error);
            }
            drop(waiting);
            make()
        })
    }

    pub(crate) fn give(&self, raw: wgpu::Buffer) {
        let (size, mut free) = (raw.size(), locked(&self.free));
        if free.bytes + size <= KEEP {
            free.bytes += size;
            free.by_size.entry(size).or_default().push(raw);
        }
    }
}

impl Pool {
    /// A buffer that the host can read.
    pub(crate) fn staging(&self, gpu: &Gpu, len: u64) -> Result<wgpu::Buffer> {
        {
            let mut waiting = locked(&self.staging);
            if let Some(at) = waiting.iter().position(|raw| raw.size() >= len) {
                return Ok(waiting.swap_remove(at));
            }
        }
        let wanted = wgpu::BufferDescriptor {
            label: None,
            size: size_of(len as usize),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        };
        gpu.guarded(len as usize, || gpu.device.create_buffer(&wanted))
    }

    pub(crate) fn give_staging(&self, raw: wgpu::Buffer) {
        let mut waiting = locked(&self.staging);
        // Large ones are rare, and few threads read at a time.
        if raw.size() <= 1 << 20 && waiting.len() < 16 {
            waiting.push(raw);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A batch that is still to be submitted may use it before.
        if let Some(raw) = batch::retire(&self.gpu, &self.raw) {
            self.gpu.pool.give(raw);
        }
    }
}

impl Buffer {
    /// `len` bytes of no particular value, on the device of the process.
    ///
    /// # Errors
    /// No device, or no memory on it.
    pub fn new(len: usize) -> Result<Self> {
        Buffer::on(&current()?, len)
    }

    pub(crate) fn on(gpu: &Arc<Gpu>, len: usize) -> Result<Self> {
        let raw = match batch::reuse(gpu, size_of(len)) {
            Some(raw) => raw,
            None => gpu.pool.take(gpu, len)?,
        };
        Ok(Buffer(Arc::new(Shared { raw, len, versions: Versions::new(), gpu: gpu.clone() })))
    }

    pub(crate) fn raw(&self) -> &wgpu::Buffer {
        &self.0.raw
    }

    /// The device that it is on.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.0.gpu
    }

    /// Fails unless it is on that device. Of two devices of a process, one is gone.
    pub(crate) fn expect_on(&self, gpu: &Arc<Gpu>) -> Result<()> {
        if Arc::ptr_eq(&self.0.gpu, gpu) {
            return Ok(());
        }
        self.0.gpu.expect_alive()?;
        gpu.expect_alive()
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// How often the bytes were written in place.
    pub fn versions(&self) -> &Versions {
        &self.0.versions
    }

    /// A number that differs between buffers that live at the same time.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }

    /// Whether this is the only handle.
    pub fn is_sole(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether both are handles to the same bytes, which a kernel can't read and write at once.
    pub fn same_as(&self, other: &Buffer) -> bool {
        self.id() == other.id()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.0.len).finish_non_exhaustive()
    }
}

/// Writes `bytes` to the beginning of a fresh buffer of just as many.
///
/// # Errors
/// A device that is gone.
pub fn store(to: &Buffer, bytes: &[u8]) -> Result<()> {
    if bytes.len() > to.len() {
        return Err(Error::OutOfBounds { what: "what is stored", len: to.len() });
    }
    batch::upload(to, bytes)
}

/// The first `len` bytes of a buffer.
///
/// # Errors
/// A device that is gone, or what was found wrong before.
pub fn load(from: &Buffer, len: usize) -> Result<Vec<u8>> {
    if len > from.len() {
        return Err(Error::OutOfBounds { what: "what is read", len: from.len() });
    }
    batch::download(from, 0, len)
}
