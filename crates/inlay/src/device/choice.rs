//! Devices: their names, the devices of the system, and the device of new tensors.

use std::fmt;
use std::str::FromStr;

use inlay_core::{Error, Result};

/// The device that holds the elements of a tensor.
///
/// ```
/// use inlay::Device;
///
/// assert_eq!("gpu:0".parse(), Ok(Device::Gpu));
/// assert_eq!(Device::Cpu.to_string(), "cpu");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Device {
    #[default]
    Cpu,
    Gpu,
}

impl Device {
    /// Returns `cpu` or `gpu`.
    ///
    /// ```
    /// # use inlay::Device;
    /// assert_eq!(Device::Gpu.name(), "gpu");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Gpu => "gpu",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "cpu" => Ok(Device::Cpu),
            "gpu" | "gpu:0" => Ok(Device::Gpu),
            _ => Err(Error::Argument {
                op: "device",
                arg: "the device",
                got: format!("{text:?}"),
                expected: "\"cpu\", \"gpu\" or \"gpu:0\"".into(),
            }),
        }
    }
}

/// A device of this system.
///
/// ```
/// for info in inlay::devices() {
///     println!("{} by {}: {}", info.device, info.backend, info.name);
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The device of tensors that are on it.
    pub device: Device,
    /// The name that the driver gives.
    pub name: String,
    /// The interface to the device: `native`, `vulkan`, `metal` or `dx12`.
    pub backend: String,
    /// The driver and its version.
    pub driver: String,
    /// Whether the GPU is emulated by software on the CPU.
    pub is_software: bool,
    /// The maximum size of a tensor in bytes, if the device reports one.
    pub max_buffer: Option<u64>,
    /// The maximum size in bytes of one binding of a kernel, if the device reports one. Larger
    /// tensors take several bindings.
    pub max_binding: Option<u64>,
    /// Whether the device computes with 64-bit floats. Otherwise it can only move them.
    pub has_float64: bool,
}

impl DeviceInfo {
    fn of_cpu() -> Self {
        DeviceInfo {
            device: Device::Cpu,
            name: format!("CPU ({})", std::env::consts::ARCH),
            backend: "native".into(),
            driver: String::new(),
            is_software: false,
            max_buffer: None,
            max_binding: None,
            has_float64: true,
        }
    }
}

/// Returns the devices of the system: the CPU, then the GPUs. Only the first GPU is used.
///
/// ```
/// use inlay::{Device, devices};
///
/// assert_eq!(devices()[0].device, Device::Cpu);
/// ```
pub fn devices() -> Vec<DeviceInfo> {
    #[cfg_attr(not(feature = "gpu"), expect(unused_mut, reason = "without GPUs there is one"))]
    let mut all = vec![DeviceInfo::of_cpu()];
    #[cfg(feature = "gpu")]
    all.extend(inlay_gpu::adapters().into_iter().map(|adapter| DeviceInfo {
        device: Device::Gpu,
        name: adapter.name,
        backend: adapter.backend,
        driver: adapter.driver,
        is_software: adapter.is_software,
        max_buffer: Some(adapter.max_buffer),
        max_binding: Some(adapter.max_binding),
        has_float64: adapter.has_float64,
    }));
    all
}

/// Sets the device on which constructors make tensors, in all threads. A GPU is opened immediately.
///
/// ```
/// use inlay::{DType, Device, Tensor, set_device};
///
/// set_device(Device::Cpu)?;
/// assert_eq!(Tensor::zeros(&[2], DType::F32)?.device(), Device::Cpu);
/// # Ok::<(), inlay::Error>(())
/// ```
///
/// # Errors
/// The device does not exist. The message says what to do about it.
pub fn set_device(device: Device) -> Result<()> {
    open(device)?;
    chosen::set(device);
    Ok(())
}

/// Returns the device on which constructors make tensors.
///
/// ```
/// use inlay::{Device, current_device, with_device};
///
/// assert_eq!(with_device(Device::Cpu, current_device)?, Device::Cpu);
/// # Ok::<(), inlay::Error>(())
/// ```
#[inline]
pub fn current_device() -> Device {
    chosen::current()
}

/// Calls `work`. During the call, constructors on this thread make tensors on `device`.
///
/// ```
/// use inlay::{DType, Device, Tensor, with_device};
///
/// let x = with_device(Device::Cpu, || Tensor::ones(&[2], DType::F32))??;
/// assert_eq!(x.device(), Device::Cpu);
/// # Ok::<(), inlay::Error>(())
/// ```
///
/// # Errors
/// The device does not exist. In this case `work` is not called.
pub fn with_device<R>(device: Device, work: impl FnOnce() -> R) -> Result<R> {
    open(device)?;
    Ok(within(device, work))
}

/// Waits until the GPU has done all submitted work. Reading a result waits for it anyway, so this
/// is only needed for measurements.
///
/// ```
/// inlay::synchronize()?;
/// # Ok::<(), inlay::Error>(())
/// ```
///
/// # Errors
/// A device that was lost.
pub fn synchronize() -> Result<()> {
    #[cfg(feature = "gpu")]
    inlay_gpu::synchronize()?;
    Ok(())
}

/// Fails unless tensors can be made on `device`. A GPU is opened.
pub(super) fn open(device: Device) -> Result<()> {
    match device {
        Device::Cpu => Ok(()),
        #[cfg(feature = "gpu")]
        Device::Gpu => inlay_gpu::current().map(drop),
        #[cfg(not(feature = "gpu"))]
        Device::Gpu => Err(not_built()),
    }
}

#[cfg(not(feature = "gpu"))]
pub(crate) fn not_built() -> Error {
    let reason = "this build of Inlay has no GPU support; build it with the feature `gpu`".into();
    Error::NoDevice { reason }
}

/// [`with_device`] for a device that is known to exist.
#[inline(always)]
pub(crate) fn within<R>(device: Device, work: impl FnOnce() -> R) -> R {
    chosen::during(device, work)
}

/// Sets the device of this thread without a scope, for callers whose scopes are not Rust's, and
/// returns the old one. `None` means the device of the process.
///
/// ```
/// use inlay::{Device, switch_device};
///
/// let before = switch_device(Some(Device::Cpu))?;
/// switch_device(before)?;
/// # Ok::<(), inlay::Error>(())
/// ```
///
/// # Errors
/// The device does not exist.
pub fn switch_device(device: Option<Device>) -> Result<Option<Device>> {
    open(device.unwrap_or_default())?;
    Ok(chosen::switch(device))
}

/// The device of the process, and the device of a thread, which takes precedence.
#[cfg(feature = "gpu")]
mod chosen {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::Device;

    static GPU: AtomicBool = AtomicBool::new(false);

    thread_local! {
        static HERE: Cell<Option<Device>> = const { Cell::new(None) };
    }

    pub(super) fn set(device: Device) {
        GPU.store(device == Device::Gpu, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn current() -> Device {
        match HERE.get() {
            Some(device) => device,
            None if GPU.load(Ordering::Relaxed) => Device::Gpu,
            None => Device::Cpu,
        }
    }

    /// Restores the previous device of the thread, also on unwinding.
    struct Restore(Option<Device>);

    impl Drop for Restore {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }

    #[inline(always)]
    pub(super) fn during<R>(device: Device, work: impl FnOnce() -> R) -> R {
        // Set even if it equals the device of the process, which another thread may change
        // meanwhile.
        let _restore = Restore(HERE.replace(Some(device)));
        work()
    }

    pub(super) fn switch(device: Option<Device>) -> Option<Device> {
        HERE.replace(device)
    }
}

/// Without the feature `gpu` there is only the CPU.
#[cfg(not(feature = "gpu"))]
mod chosen {
    use super::Device;

    pub(super) fn set(_device: Device) {}

    #[inline]
    pub(super) fn current() -> Device {
        Device::Cpu
    }

    #[inline(always)]
    pub(super) fn during<R>(_device: Device, work: impl FnOnce() -> R) -> R {
        work()
    }

    pub(super) fn switch(_device: Option<Device>) -> Option<Device> {
        None
    }
}
