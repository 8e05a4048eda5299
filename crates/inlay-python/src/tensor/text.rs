//! The text of a tensor: the elements as NumPy prints them, the shape, the dtype, the device, and
//! whether it has a gradient.

use inlay::Device;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::PyTensor;
use crate::error::{Class, raise};
use crate::gil::detached;

const PREFIX: &str = "Tensor(";

#[pymethods]
impl PyTensor {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let tensor = &self.inner;
        let numpy = py.import(intern!(py, "numpy"))?;
        let options = numpy.call_method0(intern!(py, "get_printoptions"))?;
        // The threshold may be infinite, so it is read as a float.
        let threshold: f64 = options.get_item(intern!(py, "threshold"))?.extract()?;
        let edge: usize = options.get_item(intern!(py, "edgeitems"))?.extract()?;
        let summary = tensor.numel() as f64 > threshold;
        // NumPy needs the whole tensor to print a summary. Reading only the corners avoids a copy
        // of a large tensor, possibly from a GPU or larger than memory (a broadcast view).
        let array = match summary {
            true => match detached(py, || tensor.corners(edge)) {
                Ok(corners) => PyTensor::new(corners).values(py, "repr"),
                Err(error) => Err(raise(py, &error)),
            },
            false => self.values(py, "repr"),
        };
        let gradient = if tensor.stop_gradient() { "" } else { ", stop_gradient=False" };
        let Ok(array) = array else {
            // The tensor is symbolic, its elements can't be read, or NumPy has fewer axes.
            let text = detached(py, || format!("{tensor:?}"));
            return Ok(format!("{}{gradient})", text.strip_suffix(')').unwrap_or(&text)));
        };
        let arguments = PyDict::new(py);
        arguments.set_item(intern!(py, "separator"), ", ")?;
        arguments.set_item(intern!(py, "prefix"), PREFIX)?;
        if summary {
            // The corners have fewer elements than the threshold, but must print as a summary.
            arguments.set_item(intern!(py, "threshold"), 0)?;
        }
        let elements =
            numpy.call_method(intern!(py, "array2string"), (array,), Some(&arguments))?;
        let device = match tensor.device() {
            Device::Cpu => String::new(),
            device => format!(", device={device}"),
        };
        let (shape, dtype) = (tensor.shape(), tensor.dtype());
        Ok(format!("{PREFIX}{elements}, shape={shape:?}, dtype={dtype}{device}{gradient})"))
    }

    // A format such as `.2f` is that of a number, so it needs a single element.
    fn __format__<'py>(slf: &Bound<'py, Self>, spec: &str) -> PyResult<Bound<'py, PyString>> {
        let (py, tensor) = (slf.py(), slf.get());
        if spec.is_empty() {
            return slf.str();
        }
        if tensor.inner.numel() != 1 {
            let text = format!(
                "format: x has {} elements, but the format {spec:?} is that of one number; \
                 format x.numpy() or the items of x.tolist()",
                tensor.inner.numel()
            );
            return Err(Class::Type.error(py, text));
        }
        let number = tensor.number(py, "format")?;
        Ok(number.call_method1(intern!(py, "__format__"), (spec,))?.cast_into()?)
    }
}
