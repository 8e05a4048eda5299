//! The GPU device of the process. It is opened on first use, and opened again if it was lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use inlay_core::{DType, Error, Result};

use crate::memory::Pool;
use crate::pipeline::Pipelines;

/// The advice in the error about a missing device.
const INSTALL: &str = "install a driver for Vulkan (on Debian: libvulkan1 and, for a device in \
                       software, mesa-vulkan-drivers), Metal or DirectX 12";

/// The environment variable for the largest size of a binding in bytes. Tests set a small value, so
/// that small buffers need several bindings.
const WINDOW: &str = "INLAY_GPU_WINDOW";

/// The environment variable for a part of the name of the device to use.
const NAME: &str = "INLAY_GPU_NAME";

/// The environment variable that turns optional features off. Tests set it to check the errors of a
/// device without these features.
const PLAIN: &str = "INLAY_GPU_PLAIN";

/// The properties of a device, as the system reports them.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// The name of the device, from the driver.
    pub name: String,
    /// The graphics API: vulkan, metal or dx12.
    pub backend: String,
    /// The driver and its version.
    pub driver: String,
    /// Whether the device is emulated on the CPU.
    pub is_software: bool,
    /// The largest size of a buffer in bytes.
    pub max_buffer: u64,
    /// The largest size of a binding in bytes. A larger tensor needs several bindings.
    pub max_binding: u64,
    /// The largest number of storage bindings of a kernel.
    pub max_bindings: u32,
    /// Whether kernels can compute with 64-bit floats.
    pub has_float64: bool,
}

impl Adapter {
    fn of(adapter: &wgpu::Adapter) -> Self {
        let (info, limits) = (adapter.get_info(), adapter.limits());
        Adapter {
            backend: info.backend.to_string(),
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_string(),
            is_software: info.device_type == wgpu::DeviceType::Cpu,
            name: info.name,
            max_buffer: limits.max_buffer_size,
            max_binding: limits.max_storage_buffer_binding_size,
            max_bindings: limits.max_storage_buffers_per_shader_stage,
            has_float64: features(adapter).contains(DOUBLE),
        }
    }
}

/// The features that 64-bit floats need. 64-bit integers are needed to load and store their bits.
const DOUBLE: wgpu::Features = wgpu::Features::SHADER_F64.union(wgpu::Features::SHADER_INT64);

/// An open device, with its pipelines and its pool of buffers.
pub struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) pipelines: Pipelines,
    pub(crate) pool: Pool,
    /// The largest size of a binding in bytes, rounded down to the alignment of binding offsets.
    pub(crate) window: u64,
    pub(crate) limits: wgpu::Limits,
    adapter: Adapter,
    lost: Arc<AtomicBool>,
    /// The id of the process that opened the device. A device can't be used after a fork.
    process: u32,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Gpu").field(&self.adapter.name).finish()
    }
}

/// Returns the optional features to request.
fn features(adapter: &wgpu::Adapter) -> wgpu::Features {
    match std::env::var_os(PLAIN) {
        Some(_) => wgpu::Features::empty(),
        None => adapter.features() & DOUBLE,
    }
}

/// Returns the part of a device's name that [`NAME`] asks for. An empty part is in every name.
fn wanted_name() -> String {
    std::env::var(NAME).unwrap_or_default()
}

/// Returns all adapters of the system.
fn all_adapters() -> Vec<wgpu::Adapter> {
    let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
    wanted.backends = wgpu::Backends::PRIMARY;
    wanted.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(wanted);
    pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY))
}

/// Returns those of `found` whose name contains `name`: discrete GPUs first, software devices last.
fn in_order(mut found: Vec<wgpu::Adapter>, name: &str) -> Vec<wgpu::Adapter> {
    let name = name.to_lowercase();
    found.retain(|adapter| adapter.get_info().name.to_lowercase().contains(&name));
    found.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    found
}

/// Returns the devices of the system. Inlay uses the first one.
pub fn adapters() -> Vec<Adapter> {
    in_order(all_adapters(), &wanted_name()).iter().map(Adapter::of).collect()
}

impl Gpu {
    fn open() -> Result<Self> {
        let missing = |reason: String| Error::NoDevice { reason };
        let (found, name) = (all_adapters(), wanted_name());
        let names: Vec<String> = found.iter().map(|adapter| adapter.get_info().name).collect();
        let adapters = in_order(found, &name);
        let Some(adapter) = adapters.first() else {
            return Err(missing(match names.is_empty() {
                true => format!("none was found; {INSTALL}"),
                false => format!(
                    "{NAME} is {name:?}, which is in no name of a device: there is {}",
                    quoted(&names)
                ),
            }));
        };
        let limits = adapter.limits();
        let wanted = wgpu::DeviceDescriptor {
            label: Some("inlay"),
            required_features: features(adapter),
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        };
        let info = Adapter::of(adapter);
        let (device, queue) = pollster::block_on(adapter.request_device(&wanted))
            .map_err(|error| missing(format!("{} could not be opened: {error}", info.name)))?;
        let lost = Arc::new(AtomicBool::new(false));
        let (heard, told) = (lost.clone(), lost.clone());
        device.set_device_lost_callback(move |_, _| heard.store(true, Ordering::Release));
        // By default, wgpu panics on an error outside of an error scope. Here, such an error marks
        // the device as lost, and the next call reports that.
        device.on_uncaptured_error(Arc::new(move |_| told.store(true, Ordering::Release)));
        let step = u64::from(limits.min_storage_buffer_offset_alignment).max(256);
        let window = std::env::var(WINDOW).ok().and_then(|bytes| bytes.parse().ok());
        let window = window.unwrap_or(u64::MAX).min(limits.max_storage_buffer_binding_size);
        Ok(Gpu {
            device,
            queue,
            pipelines: Pipelines::default(),
            pool: Pool::default(),
            window: (window / step * step).max(step),
            limits,
            adapter: info,
            lost,
            process: std::process::id(),
        })
    }

    /// The properties of the device.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// Fails if the device was lost, or was opened by another process before a fork.
    pub(crate) fn expect_alive(&self) -> Result<()> {
        let name = &self.adapter.name;
        if self.process != std::process::id() {
            let reason = format!("{name} was opened before a fork; start processes by spawn");
            return Err(Error::DeviceLost { reason });
        }
        if self.lost.load(Ordering::Acquire) {
            let reason = format!("{name} was lost, and what was on it; later calls open it again");
            return Err(Error::DeviceLost { reason });
        }
        Ok(())
    }

    /// The error of a buffer of `bytes` that exceeds the limit of the device.
    pub(crate) fn too_large(&self, bytes: usize) -> Error {
        let (device, limit) = (self.adapter.name.clone(), self.limits.max_buffer_size);
        Error::DeviceLimit { device, bytes, limit }
    }

    /// Marks the device as lost.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Fails unless kernels can compute with `dtype`.
    pub(crate) fn expect_arithmetic(&self, op: &'static str, dtype: DType) -> Result<()> {
        if self.adapter.has_float64 || !matches!(dtype, DType::F64 | DType::C128) {
            return Ok(());
        }
        let (device, feature) = (self.adapter.name.clone(), "shader-f64 and shader-int64");
        Err(Error::Unsupported { op, dtype, device, feature })
    }

    /// Runs `work` inside of error scopes, and returns the error that wgpu reports. `bytes` is the
    /// size in the error of a failed allocation.
    pub(crate) fn guarded<R>(&self, bytes: usize, work: impl FnOnce() -> R) -> Result<R> {
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let valid = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let result = work();
        let internal = pollster::block_on(internal.pop());
        let valid = pollster::block_on(valid.pop());
        if pollster::block_on(memory.pop()).is_some() {
            return Err(Error::OutOfMemory { bytes });
        }
        match valid.or(internal) {
            None => Ok(result),
            Some(error) => {
                self.expect_alive()?;
                Err(Error::Device { reason: error.to_string() })
            }
        }
    }

    /// Destroys the device, as if the driver had lost it. For tests.
    pub fn destroy(&self) {
        self.device.destroy();
        self.lose();
    }
}

/// Returns a text such as `"first", "second"`.
fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

static CURRENT: Mutex<Option<Arc<Gpu>>> = Mutex::new(None);

/// Returns the device of the process. The first call opens it.
///
/// # Errors
/// There is no device, or it can't be opened. The message says what to install.
pub fn current() -> Result<Arc<Gpu>> {
    let mut current = locked(&CURRENT);
    if let Some(gpu) = &*current {
        if gpu.process != std::process::id() {
            gpu.expect_alive()?;
        }
        if gpu.expect_alive().is_ok() {
            return Ok(gpu.clone());
        }
    }
    *current = None;
    let gpu = Arc::new(Gpu::open()?);
    *current = Some(gpu.clone());
    Ok(gpu)
}

/// Returns the device of the process if it is open.
pub(crate) fn opened() -> Option<Arc<Gpu>> {
    locked(&CURRENT).clone()
}

/// Locks a mutex, even if it is poisoned. The data behind these mutexes stay consistent if a thread
/// panics.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
