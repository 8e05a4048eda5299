//! Conversion of tensors to Python numbers and lists.

use inlay::{DType, Device, Kind};
use pyo3::prelude::*;

use super::PyTensor;
use crate::error::{Class, raise};
use crate::gil::detached;
use crate::numpy::{expect_elements, view};
use crate::ops::is_operand;

impl PyTensor {
    /// Copies the elements to a NumPy array, which can be printed or converted to Python objects.
    pub(super) fn values<'py>(
        &self,
        py: Python<'py>,
        what: &'static str,
    ) -> PyResult<Bound<'py, PyAny>> {
        expect_elements(py, &self.inner, what)?;
        let copied = detached(py, || match self.inner.dtype() {
            // The cast is exact, and makes `ml_dtypes` unnecessary.
            DType::BF16 => self.inner.cast(DType::F32)?.cpu(),
            _ if self.inner.device() == Device::Cpu => self.inner.copy(),
            _ => self.inner.cpu(),
        });
        let copied = copied.map_err(|error| raise(py, &error))?;
        Ok(view(&Bound::new(py, PyTensor::new(copied))?)?.into_any())
    }

    /// Returns the only element as a Python number.
    pub(super) fn number<'py>(
        &self,
        py: Python<'py>,
        what: &'static str,
    ) -> PyResult<Bound<'py, PyAny>> {
        expect_elements(py, &self.inner, what)?;
        if self.inner.numel() != 1 {
            let text = format!("{what}: x has {} elements, expected 1", self.inner.numel());
            return Err(Class::Value.error(py, text));
        }
        self.values(py, what)?.call_method0("item")
    }

    /// Like [`PyTensor::number`], but a complex dtype is an error.
    fn real<'py>(&self, py: Python<'py>, what: &'static str) -> PyResult<Bound<'py, PyAny>> {
        if self.inner.dtype().kind() == Kind::Complex {
            let text = format!("{what}: x has dtype {}, expected a real one", self.inner.dtype());
            return Err(Class::Type.error(py, text));
        }
        self.number(py, what)
    }
}

#[pymethods]
impl PyTensor {
    /// The only element, as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.number(py, "item")
    }

    /// The elements as nested lists of Python numbers. A 0-D tensor gives a number.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.values(py, "tolist")?.call_method0("tolist")
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.number(py, "bool")?.is_truthy()
    }

    // As in NumPy: whether an element equals the value, which is broadcast. NumPy compares numbers
    // of any dtypes.
    fn __contains__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if !is_operand(value) {
            return Ok(false);
        }
        self.values(py, "contains")?.contains(value)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // Python's `int` raises the usual errors for NaN and infinity.
        let int = py.get_type::<pyo3::types::PyInt>();
        int.call1((self.real(py, "int")?,)).map_err(|cause| crate::error::wrap(py, "int", cause))
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        self.real(py, "float")?.extract()
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<pyo3::types::PyComplex>().call1((self.number(py, "complex")?,))
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !self.inner.dtype().is_integer() {
            let text = format!("index: x has dtype {}, expected an integer", self.inner.dtype());
            return Err(Class::Type.error(py, text));
        }
        self.number(py, "index")
    }
}
