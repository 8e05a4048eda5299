//! Decides on which device a call runs: the device of its inputs. Plain numbers are copied there.

use inlay_core::{Error, Result};

use crate::array::Array;
use crate::op::{Arity, Op, Out};
use crate::tape::is_grad_enabled;
use crate::{Device, Tensor, current_device, device};

/// Returns the device of a call on tensors with elements: `wanted`, or else the device of the
/// inputs.
///
/// Plain data and 0-D tensors on the CPU are copied to the GPU if another input is there, because
/// plain numbers become such tensors. A tensor that is written, or whose gradient is recorded, is
/// not copied; the call then fails.
#[inline]
pub(crate) fn place<O: Op>(
    op: &O,
    inputs: &[&Tensor],
    wanted: Option<Device>,
    out: Out,
) -> Result<Device> {
    if cfg!(not(feature = "gpu")) {
        return Ok(Device::Cpu);
    }
    let first = inputs.first().map(|tensor| tensor.device());
    let device = wanted.or(first).unwrap_or_else(current_device);
    if inputs.iter().all(|tensor| tensor.device() == device) {
        return Ok(device);
    }
    meet(op, inputs, wanted, out)
}

/// Returns the device of a call whose inputs are on two devices.
#[cold]
#[inline(never)]
fn meet<O: Op>(op: &O, inputs: &[&Tensor], wanted: Option<Device>, out: Out) -> Result<Device> {
    let device = wanted.unwrap_or(Device::Gpu);
    let tracked = O::HAS_GRADIENT && is_grad_enabled();
    for (k, tensor) in inputs.iter().enumerate().filter(|(_, tensor)| tensor.device() != device) {
        let written = k == 0 && out == Out::InPlace;
        let kept = tracked && tensor.history().is_tracked();
        if device == Device::Gpu && goes_along(tensor) && !written && !kept {
            continue;
        }
        let other = inputs.iter().position(|other| other.device() == device);
        let name = |at: Option<usize>| {
            at.map_or_else(|| "the result".into(), |at| op.operation().input(at))
        };
        // The error blames the later argument, because readers see them in order.
        let (at, from) = match other {
            Some(other) if other > k => (Some(other), Some(k)),
            _ => (Some(k), other),
        };
        let place = |at: Option<usize>| at.map_or(device, |at| inputs[at].device()).name();
        return Err(Error::DeviceMismatch {
            op: op.name(),
            arg: name(at),
            got: place(at),
            other: name(from),
            want: place(from),
        });
    }
    Ok(device)
}

/// Whether a tensor may be copied to another device implicitly: a 0-D tensor on the CPU, or plain
/// data.
pub(crate) fn goes_along(tensor: &Tensor) -> bool {
    (tensor.rank() == 0 || tensor.is_plain()) && tensor.device() == Device::Cpu
}

/// Copies that are read instead of inputs, each with the number of its input.
#[derive(Default)]
pub(crate) struct Copies(Vec<(usize, Array)>);

impl Copies {
    /// Copies the inputs that are on another device to `device`.
    #[inline]
    pub(crate) fn move_along(
        &mut self,
        op: &'static str,
        device: Device,
        inputs: &[&Tensor],
    ) -> Result<()> {
        // Nothing is copied to the CPU implicitly.
        if device == Device::Cpu {
            return Ok(());
        }
        for (k, tensor) in inputs.iter().enumerate() {
            if tensor.device() != device {
                self.add(k, device::to_device(op, tensor.array(), device)?);
            }
        }
        Ok(())
    }

    /// Copies the inputs that overlap the first one, which is about to be written.
    pub(crate) fn keep_apart(&mut self, op: &'static str, inputs: &[&Tensor]) -> Result<()> {
        for (k, tensor) in inputs.iter().enumerate().skip(1) {
            if inputs[0].array().overlaps(tensor.array()) {
                self.add(k, device::to_contiguous(op, tensor.array())?);
            }
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, k: usize, copy: Array) {
        self.0.push((k, copy));
    }

    #[inline]
    pub(crate) fn get(&self, k: usize) -> Option<&Array> {
        self.0.iter().find(|(of, _)| *of == k).map(|(_, copy)| copy)
    }

    /// Returns the arrays of the inputs, or the copies that replace them.
    #[inline]
    pub(crate) fn read_from<'a, A: Arity>(&'a self, inputs: &[&'a Tensor]) -> A::Each<&'a Array> {
        let mut arrays = A::each(inputs, |tensor| tensor.array());
        for (k, copy) in &self.0 {
            arrays.as_mut()[*k] = copy;
        }
        arrays
    }
}

impl Tensor {
    /// Fails unless this tensor is on the device of `other`. The error names `op` and both
    /// arguments.
    pub(crate) fn expect_device_of(
        &self,
        op: &'static str,
        arg: &str,
        other: &Tensor,
        other_arg: &str,
    ) -> Result<()> {
        if self.is_symbolic() || other.is_symbolic() || self.device() == other.device() {
            return Ok(());
        }
        Err(Error::DeviceMismatch {
            op,
            arg: arg.into(),
            got: self.device().name(),
            other: other_arg.into(),
            want: other.device().name(),
        })
    }

    /// Returns this tensor on the device of `other`, if it is there or may be copied implicitly.
    /// Composite operations call this first, because otherwise only some of their steps would copy
    /// the tensor.
    pub(crate) fn beside(
        &self,
        op: &'static str,
        arg: &str,
        other: &Tensor,
        other_arg: &str,
    ) -> Result<Tensor> {
        let moves = goes_along(self) && (self.stop_gradient() || !is_grad_enabled());
        match self.expect_device_of(op, arg, other, other_arg) {
            Ok(()) => Ok(self.clone()),
            Err(_) if moves => {
                device::to_device(op, self.array(), other.device()).map(Tensor::from_array)
            }
            Err(error) => Err(error),
        }
    }
}
