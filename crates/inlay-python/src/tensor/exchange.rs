//! Export of tensors to NumPy and DLPack.

use numpy::{PyArrayDescr, PyUntypedArray};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyTensor;
use crate::dlpack;
use crate::error::{Class, raise};
use crate::numpy::{descr, view};

#[pymethods]
impl PyTensor {
    /// An array over the same memory. A write to one changes the other. A tensor on a GPU is an
    /// error: copy it to the CPU with ``cpu()`` first.
    ///
    /// ``bfloat16`` needs the package ``ml_dtypes``.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyUntypedArray>> {
        view(slf)
    }

    /// NumPy's protocol. It shares memory unless another dtype or a copy is requested.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let array = if copy == Some(true) {
            let fresh = slf.get().inner.copy().map_err(|error| raise(py, &error))?;
            view(&Bound::new(py, PyTensor::new(fresh))?)?.into_any()
        } else {
            view(slf)?.into_any()
        };
        let Some(dtype) = dtype else { return Ok(array) };
        let options = PyDict::new(py);
        options.set_item("copy", false)?;
        let cast = array.call_method(intern!(py, "astype"), (dtype,), Some(&options))?;
        if copy == Some(false) && !cast.is(&array) {
            let text = format!("__array__: a cast from {} copies", slf.get().inner.dtype());
            return Err(Class::Value.error(py, text));
        }
        Ok(cast)
    }

    /// The NumPy dtype of the elements. With it, ``numpy.result_type`` and ``jax.numpy.asarray``
    /// accept the tensor.
    #[getter]
    fn __numpy_dtype__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
        descr(py, self.inner.dtype())
    }

    /// DLPack's protocol: a capsule over the same memory.
    ///
    /// The memory is copied with ``copy=True``, and if DLPack can't express the strides. With
    /// ``copy=False``, strides that DLPack can't express are an error. The capsule is versioned if
    /// ``max_version`` is at least (1, 0). The older struct has no flag for read-only memory, so
    /// exporting a read-only tensor to it is an error.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let request = dlpack::Request { stream, max_version, dl_device, copy };
        dlpack::export(py, &self.inner, &request)
    }

    /// DLPack's table of C functions, through which other libraries exchange tensors without calls
    /// of Python.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        dlpack::own_table(py)
    }

    /// DLPack's protocol: the CPU. A tensor on a GPU is an error, because DLPack has no such
    /// device.
    fn __dlpack_device__(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        self.inner.expect_cpu("__dlpack_device__").map_err(|error| raise(py, &error))?;
        Ok(dlpack::CPU)
    }
}
