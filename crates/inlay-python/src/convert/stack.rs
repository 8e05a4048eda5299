//! Conversion of lists that contain tensors, or arrays of other libraries. They are stacked, so that
//! tensors keep their gradient history.

use inlay::{DType, Device, Tensor};
use pyo3::prelude::*;

use super::Call;
use super::list::{Contents, is_list, is_tensor, kind_of};
use crate::error::Class;
use crate::numpy::is_scalar;

/// A part of a list that contains tensors.
enum Part<'py> {
    /// A tensor.
    Tensor(Tensor),
    /// An array. It goes to the device of the tensors.
    Array(Tensor),
    /// Numbers, or a list of them, which take the dtype of the tensors and go to their device.
    Numbers(Bound<'py, PyAny>),
    /// A list that contains a tensor.
    List(Vec<Part<'py>>),
}

/// What the tensors and arrays in a list have in common.
#[derive(Default)]
struct Common {
    dtype: Option<DType>,
    /// `None` if all of them are arrays.
    device: Option<Device>,
}

impl<'py> Call<'py> {
    /// Converts a list that contains tensors, by the operation `stack`.
    pub(super) fn stacked(
        &mut self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Tensor> {
        let mut common = Common::default();
        let part = self.part(arg, object, &mut common)?;
        let Some(dtype) = common.dtype else {
            // Another thread has taken the tensors out of the list meanwhile.
            return Err(self.not_an_array(arg, object, "a list of numbers and tensors"));
        };
        let tensor = self.joined(arg, part, dtype, common.device)?;
        Ok(if common.device.is_none() { tensor.plain() } else { tensor })
    }

    /// Converts the tensors and arrays in a list, which must have one dtype.
    fn part(
        &mut self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
        common: &mut Common,
    ) -> PyResult<Part<'py>> {
        if is_list(object) {
            let contents = Contents::of(object).map_err(|cause| self.wrap(arg, cause))?;
            if contents.is_plain() {
                return Ok(Part::Numbers(object.clone()));
            }
            let items = object.try_iter().map_err(|cause| self.wrap(arg, cause))?;
            let part = |item: PyResult<Bound<'py, PyAny>>| {
                let item = item.map_err(|cause| self.wrap(arg, cause))?;
                self.part(arg, &item, common)
            };
            return items.map(part).collect::<PyResult<_>>().map(Part::List);
        }
        if kind_of(object).is_some() || is_scalar(object) {
            return Ok(Part::Numbers(object.clone()));
        }
        let tensor = self.array(arg, object)?.into_owned();
        let dtype = *common.dtype.get_or_insert(tensor.dtype());
        if dtype != tensor.dtype() {
            let text = format!(
                "{}: {arg} is a list of tensors of dtypes {dtype} and {}, expected one dtype",
                self.op,
                tensor.dtype()
            );
            return Err(Class::Type.error(self.py, text));
        }
        if !is_tensor(object) {
            return Ok(Part::Array(tensor));
        }
        common.device.get_or_insert(tensor.device());
        Ok(Part::Tensor(tensor))
    }

    fn joined(
        &mut self,
        arg: &'static str,
        part: Part<'py>,
        dtype: DType,
        device: Option<Device>,
    ) -> PyResult<Tensor> {
        let items = match part {
            Part::Tensor(tensor) => return Ok(tensor),
            Part::Array(tensor) => return self.moved(tensor, device),
            Part::Numbers(object) => {
                let tensor = self.values(arg, &object, dtype)?.into_owned();
                return self.moved(tensor, device);
            }
            Part::List(items) => items,
        };
        let items = items.into_iter().map(|item| self.joined(arg, item, dtype, device));
        let items = items.collect::<PyResult<Vec<Tensor>>>()?;
        self.expect_one_shape(arg, &items)?;
        let size = items.iter().map(Tensor::numel).fold(0, usize::saturating_add);
        // The user's name is for the operation itself.
        let label = self.label.take();
        let stacked = self.run(size, || Tensor::stack(&items.iter().collect::<Vec<&Tensor>>(), 0));
        self.label = label;
        stacked
    }

    /// Copies numbers and arrays to the device of the tensors.
    fn moved(&self, tensor: Tensor, device: Option<Device>) -> PyResult<Tensor> {
        match device {
            Some(device) if device != tensor.device() => {
                self.run(tensor.numel(), || tensor.to(device))
            }
            _ => Ok(tensor),
        }
    }

    /// Fails for items of different shapes. Sizes that are not known yet are checked by `stack`.
    fn expect_one_shape(&self, arg: &'static str, items: &[Tensor]) -> PyResult<()> {
        let known = |tensor: &Tensor| !tensor.shape().contains(&Tensor::UNKNOWN);
        let Some(first) = items.first().filter(|first| known(first)) else { return Ok(()) };
        let other = items.iter().find(|item| known(item) && item.shape() != first.shape());
        let Some(other) = other else { return Ok(()) };
        let text = format!(
            "{}: {arg} is a list of items of shapes {:?} and {:?}, expected one shape",
            self.op,
            first.shape(),
            other.shape()
        );
        Err(Class::Value.error(self.py, text))
    }
}
