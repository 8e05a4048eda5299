//! The device of a tensor, and copies to another device.

use pyo3::prelude::*;

use super::PyTensor;
use crate::device::parse;
use crate::error::raise;
use crate::gil::detached;

#[pymethods]
impl PyTensor {
    /// The device of the elements: ``'cpu'`` or ``'gpu'``.
    #[getter]
    fn device(&self) -> &'static str {
        self.inner.device().name()
    }

    /// The tensor on ``'cpu'`` or ``'gpu'``: itself if it is there already, otherwise a copy.
    ///
    /// The gradient of the copy is copied back to the device of this tensor.
    ///
    /// >>> import inlay
    /// >>> inlay.zeros([2]).to('cpu').device
    /// 'cpu'
    fn to(slf: &Bound<'_, Self>, device: &Bound<'_, PyAny>) -> PyResult<Py<PyTensor>> {
        let (py, inner) = (slf.py(), slf.get().inner());
        let device = parse("to", device)?;
        if inner.device() == device {
            return Ok(slf.clone().unbind());
        }
        let moved = detached(py, || inner.to(device)).map_err(|error| raise(py, &error))?;
        Py::new(py, PyTensor::new(moved))
    }

    /// The tensor on the CPU: itself if it is there already, otherwise a copy.
    fn cpu(slf: &Bound<'_, Self>) -> PyResult<Py<PyTensor>> {
        let (py, inner) = (slf.py(), slf.get().inner());
        if inner.device() == inlay::Device::Cpu {
            return Ok(slf.clone().unbind());
        }
        let moved = detached(py, || inner.cpu()).map_err(|error| raise(py, &error))?;
        Py::new(py, PyTensor::new(moved))
    }
}
