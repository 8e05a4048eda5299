//! Runs the same tests on every device. Constructors make tensors on the current device.

use std::ops::RangeInclusive;

use inlay::{Device, current_device};

/// The numbers of threads that must give the same results. On a GPU the number has no effect.
pub(crate) fn threads() -> RangeInclusive<usize> {
    match current_device() {
        Device::Cpu => 1..=4,
        Device::Gpu => 1..=1,
    }
}

/// Calls `test` with a GPU as the current device. Fails if there is no GPU.
#[cfg(feature = "gpu")]
pub(crate) fn on_gpu<R>(test: impl FnOnce() -> R) -> R {
    inlay::with_device(Device::Gpu, test).unwrap()
}

/// Runs tests of this module again, on the GPU, as `gpu::<name>`.
macro_rules! also_on_gpu {
    ($($test:ident),* $(,)?) => {
        #[cfg(feature = "gpu")]
        mod gpu {
            $(#[test] fn $test() -> impl std::process::Termination { crate::support::device::on_gpu(super::$test) })*
        }
    };
}
pub(crate) use also_on_gpu;
