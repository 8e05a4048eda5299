//! The `Tensor` class with its attributes and conversions. `ops` adds the methods of the
//! operations.

mod copies;
mod device;
mod exchange;
mod numbers;
mod text;

use std::sync::OnceLock;

use inlay::Tensor;
use inlay::interop::dlpack::{DLTensor, Dims};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::dtype::{PyDType, instance};
use crate::error::{Class, raise};
use crate::graph::expect_sizes;

pub(crate) use copies::rebuild;

/// An array of elements of one dtype.
///
/// ``inlay.to_tensor`` makes a tensor with a copy of its data. ``inlay.from_numpy`` and
/// ``inlay.from_dlpack`` make one that shares memory. Views share memory, too. Methods whose names
/// end in ``_`` write in place.
#[pyclass(name = "Tensor", module = "inlay", frozen, weakref)]
pub(crate) struct PyTensor {
    inner: Tensor,
    /// Made when another library first asks for them, and kept for as long as the object lives.
    dims: OnceLock<Box<Dims>>,
}

impl PyTensor {
    /// Wraps a tensor in a Python object.
    pub(crate) fn new(inner: Tensor) -> Self {
        PyTensor { inner, dims: OnceLock::new() }
    }

    /// Returns the wrapped tensor.
    pub(crate) fn inner(&self) -> &Tensor {
        &self.inner
    }

    /// The C struct of the tensor in DLPack, valid for as long as the object lives, or `None` if
    /// DLPack can't describe the tensor.
    pub(crate) fn describe(&self) -> Option<DLTensor> {
        let dims = match self.dims.get() {
            Some(dims) => dims,
            None => {
                let dims = Dims::of(&self.inner)?;
                self.dims.get_or_init(|| Box::new(dims))
            }
        };
        Some(dims.view(&self.inner))
    }
}

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (*args, **kwargs))]
    #[expect(unused_variables, reason = "any call is refused, whatever its arguments are")]
    fn refuse(
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let text = "Tensor: the class has no constructor, call inlay.to_tensor(data)";
        Err(Class::Type.error(py, text))
    }

    /// The sizes of the axes: an ``inlay.Shape``, which is a tuple. An unknown size of a symbolic
    /// tensor is -1.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.import(py, "inlay.shapes", "Shape")?;
        if self.inner.is_symbolic() {
            expect_sizes(self.inner.shape())?;
        }
        // The cast makes -1 of an unknown size.
        let sizes = PyTuple::new(py, self.inner.shape().iter().map(|&size| size as isize))?;
        class.call1((sizes,))
    }

    /// Whether the tensor represents a value of a program and has no elements.
    #[getter]
    fn _is_symbolic(&self) -> bool {
        self.inner.is_symbolic()
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner.rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> PyResult<isize> {
        if self.inner.is_symbolic() {
            expect_sizes(self.inner.shape())?;
            if self.inner.shape().contains(&Tensor::UNKNOWN) {
                return Ok(-1);
            }
        }
        Ok(self.inner.numel() as isize)
    }

    /// The element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDType>> {
        instance(py, self.inner.dtype())
    }

    /// The distance in bytes from one element to the next along each dimension.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.layout().strides())
    }

    /// The number of bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.inner.dtype().size()
    }

    /// The number of bytes of all elements, without gaps between them.
    #[getter]
    fn nbytes(&self) -> usize {
        self.inner.numel().saturating_mul(self.itemsize())
    }

    /// A view with the axes in reverse order.
    #[getter]
    #[expect(non_snake_case, reason = "NumPy's name")]
    fn T(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let reversed: Vec<i64> = (0..self.inner.rank() as i64).rev().collect();
        let view = self.inner.transpose(&reversed);
        view.map(PyTensor::new).map_err(|error| raise(py, &error))
    }

    /// Whether in-place operations may write to the tensor.
    #[getter]
    fn writable(&self) -> bool {
        self.inner.is_writable()
    }

    /// Whether the elements are contiguous in row-major order.
    fn is_contiguous(&self) -> bool {
        self.inner.is_contiguous()
    }

    /// The address of the first element; 0 for a tensor on a GPU.
    fn data_ptr(&self) -> usize {
        self.inner.data_ptr() as usize
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let first = self.inner.shape().first().copied();
        if first == Some(Tensor::UNKNOWN) && self.inner.is_symbolic() {
            expect_sizes(self.inner.shape())?;
            let text = "len: the size of a symbolic tensor is not known yet";
            return Err(Class::Type.error(py, text));
        }
        first.ok_or_else(|| Class::Type.error(py, "len: a 0-D tensor has no length"))
    }

    // `==` compares elements, so the hash uses the identity of the object.
    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        (slf.as_ptr() as isize).rotate_right(4)
    }
}
