//! Buffers on the device. They are reference-counted, have version counters like CPU buffers, and
//! are recycled by a pool.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use inlay_core::{Error, Result, Versions};

use crate::batch;
use crate::device::{Gpu, current, locked, opened};

/// A handle to bytes on the device. Clones share the bytes.
#[derive(Clone)]
pub struct Buffer(Arc<Shared>);

struct Shared {
    raw: wgpu::Buffer,
    /// The requested number of bytes. `raw` may have more.
    len: usize,
    versions: Versions,
    gpu: Arc<Gpu>,
}

/// The free buffers of a device, which are kept for reuse.
#[derive(Default)]
pub(crate) struct Pool {
    free: Mutex<Free>,
    /// Free staging buffers, which the host can read.
    staging: Mutex<Vec<wgpu::Buffer>>,
    reused: AtomicU64,
    made: AtomicU64,
    pub(crate) submissions: AtomicU64,
}

#[derive(Default)]
struct Free {
    by_size: HashMap<u64, Vec<wgpu::Buffer>>,
    bytes: u64,
}

/// The largest total size of free buffers in bytes: a quarter of the memory of a small graphics
/// card.
const KEEP: u64 = 512 << 20;

/// The counters of the device and its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStats {
    /// The bytes of all free buffers.
    pub cached: u64,
    /// How often a free buffer was reused.
    pub reused: u64,
    /// The number of buffers that were created.
    pub made: u64,
    /// The number of batches that were submitted.
    pub submissions: u64,
}

/// Returns the counters of the device if one is open.
pub fn pool_stats() -> Option<PoolStats> {
    let gpu = opened()?;
    let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Pool { free, reused, made, submissions, .. } = &gpu.pool;
    let cached = locked(free).bytes;
    let (reused, made, submissions) = (get(reused), get(made), get(submissions));
    Some(PoolStats { cached, reused, made, submissions })
}

/// Releases all free buffers, if a device is open.
pub fn empty_pool() {
    if let Some(gpu) = opened() {
        *locked(&gpu.pool.free) = Free::default();
        locked(&gpu.pool.staging).clear();
    }
}

/// The usages of every buffer: an operand or the parameters of a kernel, and the source or the
/// destination of a copy.
const USAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
    .union(wgpu::BufferUsages::UNIFORM)
    .union(wgpu::BufferUsages::COPY_SRC)
    .union(wgpu::BufferUsages::COPY_DST);

/// Rounds `len` up to the size of a buffer. There are only a few different sizes, so that free
/// buffers fit new requests. A size is a multiple of 256 bytes, and for large buffers at most 25 %
/// more than `len`.
fn size_of(len: usize) -> u64 {
    let len = (len as u64).max(256);
    let step = (len.next_power_of_two() / 8).max(256);
    len.div_ceil(step) * step
}

impl Pool {
    /// Returns a free buffer of at least `len` bytes, or creates one.
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
        // The rounded size may exceed the largest size of a buffer, even if `len` does not.
        let most = gpu.limits.max_buffer_size / 16 * 16;
        let size = size.min(most);
        if size < len as u64 {
            return Err(gpu.too_large(len));
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        let wanted =
            wgpu::BufferDescriptor { label: None, size, usage: USAGE, mapped_at_creation: false };
        let make = || gpu.guarded(len, || gpu.device.create_buffer(&wanted));
        make().or_else(|error| {
            // Free buffers may occupy the memory that is missing.
            let free = std::mem::take(&mut *locked(&self.free));
            if free.bytes == 0 {
                return Err(error);
            }
            drop(free);
            make()
        })
    }

    /// Adds a buffer to the free buffers, or drops it if the pool is full.
    pub(crate) fn give(&self, raw: wgpu::Buffer) {
        let (size, mut free) = (raw.size(), locked(&self.free));
        if free.bytes + size <= KEEP {
            free.bytes += size;
            free.by_size.entry(size).or_default().push(raw);
        }
    }

    /// Returns a free staging buffer of at least `len` bytes, or creates one.
    pub(crate) fn staging(&self, gpu: &Gpu, len: u64) -> Result<wgpu::Buffer> {
        {
            let mut free = locked(&self.staging);
            if let Some(at) = free.iter().position(|raw| raw.size() >= len) {
                return Ok(free.swap_remove(at));
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

    /// Adds a staging buffer to the free ones.
    pub(crate) fn give_staging(&self, raw: wgpu::Buffer) {
        let mut free = locked(&self.staging);
        // Large staging buffers are rare, and few threads read at the same time, so only a few
        // small ones are kept.
        if raw.size() <= 1 << 20 && free.len() < 16 {
            free.push(raw);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Recorded commands of this thread's batch may still use the buffer. Until the batch is
        // submitted, only later commands of the same batch may reuse it.
        if let Some(raw) = batch::retire(&self.gpu, &self.raw) {
            self.gpu.pool.give(raw);
        }
    }
}

impl Buffer {
    /// Makes a buffer of `len` bytes on the device of the process. The bytes have undefined values.
    ///
    /// # Errors
    /// There is no device, it has not enough memory, or its buffers have a lower limit.
    pub fn new(len: usize) -> Result<Self> {
        Buffer::on(&current()?, len)
    }

    /// Like [`Buffer::new`], on a given device.
    pub(crate) fn on(gpu: &Arc<Gpu>, len: usize) -> Result<Self> {
        if len as u64 > gpu.limits.max_buffer_size {
            return Err(gpu.too_large(len));
        }
        let raw = match batch::reuse(gpu, size_of(len)) {
            Some(raw) => raw,
            None => gpu.pool.take(gpu, len)?,
        };
        Ok(Buffer(Arc::new(Shared { raw, len, versions: Versions::new(), gpu: gpu.clone() })))
    }

    pub(crate) fn raw(&self) -> &wgpu::Buffer {
        &self.0.raw
    }

    /// The device of the buffer.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.0.gpu
    }

    /// Fails unless the buffer is on `gpu`. A process opens a second device only after the first
    /// was lost, so one of the two checks below fails if the devices differ.
    pub(crate) fn expect_on(&self, gpu: &Arc<Gpu>) -> Result<()> {
        if Arc::ptr_eq(&self.0.gpu, gpu) {
            return Ok(());
        }
        self.0.gpu.expect_alive()?;
        gpu.expect_alive()
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The version counter, which counts in-place writes.
    pub fn versions(&self) -> &Versions {
        &self.0.versions
    }

    /// A number that no other live buffer has.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }

    /// Whether this is the only handle.
    pub fn is_sole(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether both are handles to the same bytes. A kernel can't read and write the same buffer.
    pub fn same_as(&self, other: &Buffer) -> bool {
        self.id() == other.id()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.0.len).finish_non_exhaustive()
    }
}

/// Writes `bytes` to the beginning of a new buffer.
///
/// # Errors
/// The buffer has fewer bytes, or the device is lost.
pub fn store(to: &Buffer, bytes: &[u8]) -> Result<()> {
    if bytes.len() > to.len() {
        return Err(Error::OutOfBounds { what: "what is stored", len: to.len() });
    }
    batch::upload(to, bytes)
}

/// Returns the first `len` bytes of a buffer. Submits the batch and waits for it.
///
/// # Errors
/// The buffer has fewer bytes, the device is lost, or a check of the batch has failed.
pub fn load(from: &Buffer, len: usize) -> Result<Vec<u8>> {
    if len > from.len() {
        return Err(Error::OutOfBounds { what: "what is read", len: from.len() });
    }
    batch::download(from, 0, len)
}
