//! The `dtype` class, and the conversion of arguments to dtypes.

use std::ffi::c_int;

use inlay::DType;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};

use crate::error::{Class, type_name};
use crate::numpy::{dtype_of_number, scalar_class};

/// The type of a tensor's elements.
///
/// There is one instance for each of the fifteen dtypes: ``inlay.float32`` and so on. A dtype
/// argument may also be a name, a NumPy dtype, scalar type or spelling (``'f8'``, ``'half'``), a
/// dtype of PyTorch or Paddle, or one of Python's types, which mean what they mean to NumPy and PyTorch: ``bool``, ``int``
/// (int64), ``float`` (float64) and ``complex`` (complex128).
///
/// >>> import inlay
/// >>> inlay.dtype("float32") is inlay.float32
/// True
/// >>> inlay.float32 == "float32"
/// True
/// >>> inlay.dtype("f8"), inlay.dtype(float)
/// (inlay.float64, inlay.float64)
#[pyclass(name = "dtype", module = "inlay", frozen)]
pub(crate) struct PyDType {
    inner: DType,
}

static INSTANCES: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

/// Returns the Python object of a dtype.
pub(crate) fn instance(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyDType>> {
    let all = INSTANCES.get_or_try_init(py, || {
        DType::ALL.iter().map(|&inner| Py::new(py, PyDType { inner })).collect::<PyResult<Vec<_>>>()
    })?;
    Ok(all[dtype as usize].bind(py).clone())
}

/// Adds the class and its fifteen instances.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDType>()?;
    for dtype in DType::ALL {
        module.add(dtype.name(), instance(module.py(), dtype)?)?;
    }
    Ok(())
}

/// Converts an argument to a dtype.
pub(crate) fn parse(op: &'static str, object: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Some(dtype) = known(object)? {
        return Ok(dtype);
    }
    let py = object.py();
    let got = match object.repr() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("a {}", type_name(object)),
    };
    let names = DType::ALL.map(DType::name).join(", ");
    Err(Class::Type.error(py, format!("{op}: dtype is {got}, expected one of {names}")))
}

/// Like [`parse`], for an argument whose default is `None`.
pub(crate) fn parse_optional(
    op: &'static str,
    object: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<DType>> {
    object.map(|object| parse(op, object)).transpose()
}

fn known(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    if let Ok(name) = object.cast::<PyString>() {
        let own = name.to_string_lossy().parse().ok();
        return Ok(own.or_else(|| of_spelling(name)));
    }
    if let Ok(class) = object.cast::<PyType>()
        && let Some(dtype) = of_python_class(class)
    {
        return Ok(Some(dtype));
    }
    own_or_numpy(object)
}

/// The dtype of NumPy's spelling of it: `f8`, `<f4`, `?`, `half`, `double`.
fn of_spelling(name: &Bound<'_, PyString>) -> Option<DType> {
    // `int` has the size of a pointer in NumPy 2, and of C's `long` before.
    if name == "int" {
        return Some(DType::I64);
    }
    PyArrayDescr::new(name.py(), name).ok().and_then(|descr| of_descr(&descr))
}

fn of_python_class(class: &Bound<'_, PyType>) -> Option<DType> {
    let py = class.py();
    if class.is(py.get_type::<PyBool>()) {
        Some(DType::Bool)
    } else if class.is(py.get_type::<PyInt>()) {
        Some(DType::I64)
    } else if class.is(py.get_type::<PyFloat>()) {
        Some(DType::F64)
    } else if class.is(py.get_type::<PyComplex>()) {
        Some(DType::C128)
    } else {
        None
    }
}

/// The dtype of an `inlay.dtype`, a NumPy dtype or scalar type, or another library's dtype.
fn own_or_numpy(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = object.py();
    if let Ok(own) = object.cast::<PyDType>() {
        return Ok(Some(own.get().inner));
    }
    if let Ok(descr) = object.cast::<PyArrayDescr>() {
        return Ok(of_descr(descr));
    }
    match object.cast::<PyType>() {
        Ok(class) if class.is_subclass(&scalar_class(py))? => {
            // NumPy fails or warns when it converts an abstract class (`np.floating`).
            let named = class.name()?;
            let abstracts = ["generic", "number", "integer", "signedinteger", "unsignedinteger"];
            let more = ["inexact", "floating", "complexfloating", "flexible", "character"];
            if abstracts.iter().chain(&more).any(|name| named == *name) {
                return Ok(None);
            }
            Ok(PyArrayDescr::new(py, class.as_any()).ok().and_then(|descr| of_descr(&descr)))
        }
        _ => of_library(object),
    }
}

/// The dtype of a `torch.dtype` or a `paddle.dtype`, whose texts are names: `torch.float32`.
fn of_library(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    // Paddle's class is called by either name.
    let class = object.get_type();
    let class = class.name()?;
    if class != "dtype" && class != "DataType" {
        return Ok(None);
    }
    let text = object.str()?;
    let text = text.to_string_lossy();
    let name = text.strip_prefix("torch.").or_else(|| text.strip_prefix("paddle."));
    Ok(name.and_then(|name| name.parse().ok()))
}

fn of_descr(descr: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    let number: c_int = descr.num();
    let swapped = descr.is_native_byteorder() == Some(false);
    dtype_of_number(descr.py(), number).filter(|_| !swapped)
}

#[pymethods]
impl PyDType {
    #[new]
    fn new<'py>(dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDType>> {
        instance(dtype.py(), parse("dtype", dtype)?)
    }

    /// The name: ``"float32"``.
    #[getter]
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.inner.size()
    }

    /// The NumPy dtype of the same meaning. With it, NumPy accepts this object as a dtype.
    #[getter]
    fn __numpy_dtype__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
        crate::numpy::descr(py, self.inner)
    }

    fn __str__(&self) -> &'static str {
        self.inner.name()
    }

    fn __repr__(&self) -> String {
        format!("inlay.{}", self.inner)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        if let Ok(name) = other.cast::<PyString>() {
            return Ok(Some(name.to_string_lossy() == self.inner.name()));
        }
        let numpy = other.is_instance_of::<PyArrayDescr>() || other.is_instance_of::<PyType>();
        let same = own_or_numpy(other)?.map(|dtype| dtype == self.inner);
        Ok(same.or(numpy.then_some(false)))
    }

    // A dtype is equal to its name, so it has the same hash.
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::intern(py, self.inner.name()).hash()
    }

    // If `__reduce__` returns a string, pickle looks up the global variable of that name.
    fn __reduce__(&self) -> &'static str {
        self.inner.name()
    }
}
