//! Decides on which device a call runs: that of its inputs. Plain numbers are copied there.

use inlay_core::{Error, Result};
use smallvec::SmallVec;

use crate::array::Array;
use crate::op::{Op, Out};
use crate::tape::is_grad_enabled;
use crate::{Device, Tensor, current_device, device};

/// The device of a call on tensors with elements: `wanted`, or else where they are.
///
/// A 0-D tensor of the CPU, and plain data, go along with others to their device, as plain numbers
/// become such tensors; but not one that is written, nor one whose gradient would be wanted back.
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

/// The device of a call whose inputs are on two.
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
        // The later one is at fault, as readers see them in order.
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

/// Whether a tensor is moved unasked: a single number on the CPU, or plain data.
pub(crate) fn goes_along(tensor: &Tensor) -> bool {
    (tensor.rank() == 0 || tensor.is_plain()) && tensor.device() == Device::Cpu
}

/// Inputs that are read from a copy, by their number.
#[derive(Default)]
pub(crate) struct Copies(Vec<(usize, Array)>);

impl Copies {
    /// Copies what goes along with the other inputs to their device.
    #[inline]
    pub(crate) fn move_along(
        &mut self,
        op: &'static str,
        device: Device,
        inputs: &[&Tensor],
    ) -> Result<()> {
        // Nothing goes along to the CPU.
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

    /// The arrays of the inputs, or their copies.
    #[inline]
    pub(crate) fn read_from<'a>(&'a self, inputs: &[&'a Tensor]) -> SmallVec<[&'a Array; 4]> {
        // Pushed one by one, where they stay: to collect them takes several times as long.
        let mut arrays = SmallVec::new();
        inputs.iter().for_each(|tensor| arrays.push(tensor.array()));
        for (k, copy) in &self.0 {
            arrays[*k] = copy;
        }
        arrays
    }
}

impl Tensor {
    /// Fails unless this tensor, which an operation calls `arg`, is where `other` is.
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

    /// This tensor where `other` is, if it is there or goes along; for operations that are made of
    /// several, which would otherwise move only a part.
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
