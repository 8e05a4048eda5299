//! Which device: their names, what the system has, and where new tensors are made.

use std::fmt;
use std::str::FromStr;

use inlay_core::{Error, Result};

/// Where the elements of a tensor are.
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
    /// `cpu` or `gpu`.
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

/// A device that the system has.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Where tensors on it are.
    pub device: Device,
    /// What the driver calls it.
    pub name: String,
    /// What it is reached by: `native`, `vulkan`, `metal` or `dx12`.
    pub backend: String,
    /// The driver and its version.
    pub driver: String,
    /// Whether it is a GPU that a program on the CPU plays.
    pub is_software: bool,
    /// Bytes of one tensor, at most, where the device says so.
    pub max_buffer: Option<u64>,
    /// Bytes that a kernel sees at once, where the device says so; larger tensors take several.
    pub max_binding: Option<u64>,
    /// Whether it computes with 64-bit floats; others it only moves.
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

/// The devices that the system has: the CPU, then its GPUs, of which the first is used.
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

/// Makes `device` the one on which constructors make tensors, in all threads. A GPU is opened now.
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
/// No such device; the text says what to do about it.
pub fn set_device(device: Device) -> Result<()> {
    open(device)?;
    chosen::set(device);
    Ok(())
}

/// The device on which constructors make tensors.
#[inline]
pub fn current_device() -> Device {
    chosen::current()
}

/// Calls `work`, in which constructors of this thread make tensors on `device`.
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
/// No such device; then `work` was not called.
pub fn with_device<R>(device: Device, work: impl FnOnce() -> R) -> Result<R> {
    open(device)?;
    Ok(within(device, work))
}

/// Waits until everything that was asked of the GPU is done. Whatever reads a result waits for it by
/// itself; this is for those who measure.
///
/// # Errors
/// A device that was lost.
pub fn synchronize() -> Result<()> {
    #[cfg(feature = "gpu")]
    inlay_gpu::synchronize()?;
    Ok(())
}

/// Fails unless tensors can be made there.
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

/// [`with_device`] for a device that is known to be there.
#[inline(always)]
pub(crate) fn within<R>(device: Device, work: impl FnOnce() -> R) -> R {
    chosen::during(device, work)
}

/// Sets this thread's device without a scope, for callers whose scopes are not Rust's, and returns
/// the old one; without one it is the process's.
///
/// # Errors
/// No such device.
pub fn switch_device(device: Option<Device>) -> Result<Option<Device>> {
    open(device.unwrap_or_default())?;
    Ok(chosen::switch(device))
}

/// The process's choice, and a thread's in its place.
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

    /// Restores what was before, also when it unwinds.
    struct Restore(Option<Device>);

    impl Drop for Restore {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }

    #[inline(always)]
    pub(super) fn during<R>(device: Device, work: impl FnOnce() -> R) -> R {
        // Set even if it is the process's: another thread may choose another one meanwhile.
        let _restore = Restore(HERE.replace(Some(device)));
        work()
    }

    pub(super) fn switch(device: Option<Device>) -> Option<Device> {
        HERE.replace(device)
    }
}

/// There is one device.
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
