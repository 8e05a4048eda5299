//! The same tests on every device: constructors make tensors on the current one.

use std::ops::RangeInclusive;

use inlay::{Device, current_device};

/// Numbers of threads whose results must be the same; a GPU has its own.
pub(crate) fn threads() -> RangeInclusive<usize> {
    match current_device() {
        Device::Cpu => 1..=4,
        Device::Gpu => 1..=1,
    }
}

/// Calls `test` with a GPU as the current device; a test fails where there is none.
#[cfg(feature = "gpu")]
pub(crate) fn on_gpu<R>(test: impl FnOnce() -> R) -> R {
    inlay::with_device(Device::Gpu, test).unwrap()
}

/// Runs tests of this module once more, on the GPU, as `gpu::<name>`.
macro_rules! also_on_gpu {
    ($($test:ident),* $(,)?) => {
        #[cfg(feature = "gpu")]
        mod gpu {
            $(#[test] fn $test() { crate::support::device::on_gpu(super::$test); })*
        }
    };
}
pub(crate) use also_on_gpu;
