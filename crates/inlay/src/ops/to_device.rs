//! `to`: copies a tensor to another device.

use inlay_core::{Error, Meta, Result};

use crate::array::Array;
use crate::declare::{Operation, declare};
use crate::funnel::apply;
use crate::op::{Inferred, Inputs, Op, Out};
use crate::tape::{Grads, Rule};
use crate::{Device, Tensor, device};

declare! {
    TO = "to"(x: Tensor);
}

/// Moves a tensor between devices. Programs don't hold this operation: they run where their feeds
/// are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct ToDevice {
    from: Device,
    to: Device,
}

impl Op for ToDevice {
    type Inputs = Inputs<1>;
    type Found = ();

    fn operation(&self) -> &'static Operation {
        &TO
    }

    fn infer(&self, [x]: &[Meta; 1]) -> Result<Inferred<()>> {
        Inferred::only(x.clone())
    }

    fn run(&self, [x]: &[&Array; 1], _: &Inferred<()>, _out: Out) -> Result<Array> {
        device::to_device(self.name(), x, self.to)
    }

    fn grad(&self, rule: &Rule<'_>, (): &()) -> Result<Grads> {
        rule.each(|_| rule.g().to(self.from).map(Some))
    }
}

impl Tensor {
    /// Returns the device of the elements. A symbolic tensor has no elements; its device is the
    /// CPU.
    ///
    /// ```
    /// # use inlay::{Device, Tensor};
    /// assert_eq!(Tensor::from([1, 2]).device(), Device::Cpu);
    /// ```
    #[inline]
    pub fn device(&self) -> Device {
        self.array().buffer.device()
    }

    /// Returns the same elements on `device`: this tensor if it is there already, otherwise a copy.
    /// The gradient is copied back to the device of this tensor.
    ///
    /// ```
    /// # use inlay::{DType, Device, Tensor};
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// assert_eq!(x.to(Device::Cpu)?.device(), Device::Cpu);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// No such device, no memory on it, a symbolic tensor.
    #[track_caller]
    pub fn to(&self, device: Device) -> Result<Tensor> {
        let op = TO.name;
        if self.is_symbolic() {
            let got = "a symbolic tensor".into();
            let expected = "one with elements, as a program runs where its feeds are".into();
            return Err(Error::Argument { op, arg: "x", got, expected });
        }
        if self.device() == device {
            return Ok(self.clone());
        }
        apply(ToDevice { from: self.device(), to: device }, &[self])
    }

    /// Returns the same elements on the CPU; see [`Tensor::to`].
    ///
    /// ```
    /// # use inlay::{Device, Tensor};
    /// assert_eq!(Tensor::from([1, 2]).cpu()?.device(), Device::Cpu);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::to`].
    #[track_caller]
    pub fn cpu(&self) -> Result<Tensor> {
        self.to(Device::Cpu)
    }
}
