//! Conversion of arguments to tensors and of results to Python objects. Each call of an operation
//! has a [`Call`].

mod numbers;
mod refuse;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use inlay::{DType, Device, Error, Kind, Tensor};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyRange, PyTuple};

use self::numbers::{all_ints, expect_range, number_of, only_ints};
use crate::error::{Class, raise};
use crate::gil::detached;
use crate::numpy::{Unfit, asarray, is_scalar, owned, share, to_native, view};
use crate::tensor::PyTensor;

/// The largest number of elements for which an operation keeps the GIL. Releasing and reacquiring
/// the GIL takes longer than such an operation, and another thread may hold it for milliseconds.
const KEEP_GIL: usize = 16384;

/// The arguments and the result of one call of an operation.
///
/// The result is a `Tensor` if one of the arguments is one, otherwise a NumPy array.
pub(crate) struct Call<'py> {
    py: Python<'py>,
    op: &'static str,
    any_tensor: bool,
    /// Whether an argument is on a GPU. Such a call may wait for the GPU, so it releases the GIL.
    on_gpu: bool,
    /// The user's name for the nodes that the call adds to a program.
    label: Option<String>,
}

/// An argument as a tensor. The tensor of a `Tensor` object is borrowed, because cloning it changes
/// a reference count, which takes 6 ns.
pub(crate) type Arg<'a> = Cow<'a, Tensor>;

/// An argument before its dtype is decided.
enum Came<'a, 'py> {
    /// A tensor, an array or a NumPy scalar, with a dtype of its own.
    Typed(Arg<'a>),
    /// A Python number or list, read by NumPy. The operation chooses the dtype.
    Untyped(Bound<'py, PyUntypedArray>),
}

impl<'py> Call<'py> {
    /// Begins a call of the operation `op`. Error messages start with this name.
    pub(crate) fn new(py: Python<'py>, op: &'static str) -> Self {
        Call { py, op, any_tensor: false, on_gpu: false, label: None }
    }

    /// The token that proves that the GIL is held.
    pub(crate) fn py(&self) -> Python<'py> {
        self.py
    }

    /// The name of the operation.
    pub(crate) fn op(&self) -> &'static str {
        self.op
    }

    /// Sets the name of the nodes that the call adds to a program.
    pub(crate) fn set_label(&mut self, label: String) {
        self.label = Some(label);
    }

    /// The tensor of a `Tensor` object.
    #[inline]
    pub(crate) fn own<'a>(&mut self, object: &'a Bound<'py, PyAny>) -> Option<&'a Tensor> {
        // The class has no subclasses. A failed cast would make an error, which takes 10 ns.
        if !object.is_exact_instance_of::<PyTensor>() {
            return None;
        }
        let tensor = object.cast_exact::<PyTensor>().ok()?.get().inner();
        self.saw(tensor);
        Some(tensor)
    }

    /// The tensor over the memory of a NumPy array, unless that is of a subclass or can't be shared.
    #[inline]
    pub(crate) fn plain_array(&self, object: &Bound<'py, PyAny>) -> Option<Tensor> {
        if !object.is_exact_instance_of::<PyUntypedArray>() {
            return None;
        }
        share(object.cast_exact().ok()?).ok().map(Tensor::plain)
    }

    /// Whether an object is a Python number or list, which has no dtype of its own.
    pub(crate) fn is_untyped(object: &Bound<'py, PyAny>) -> bool {
        is_plain(object) && !is_scalar(object)
    }

    /// Converts a tensor, an array, a NumPy scalar, a list or a number. A list or number gets the
    /// dtype that NumPy chooses.
    pub(crate) fn array<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Arg<'a>> {
        match self.bring_in(arg, object)? {
            Came::Typed(tensor) => Ok(tensor),
            Came::Untyped(array) => self.natural(arg, &array).map(Arg::Owned),
        }
    }

    /// Like [`Call::array`], but a list or a Python number takes the dtype `like`. The kind of
    /// `like` must be the same or wider: 1 becomes 1.0 for a float tensor, but 1.5 is an error for
    /// an integer tensor.
    pub(crate) fn values<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
        like: DType,
    ) -> PyResult<Arg<'a>> {
        if let Some(number) = number_of(object)? {
            let tensor = Tensor::scalar(self.op, arg, number, like);
            return tensor.map(Arg::Owned).map_err(|error| self.raise(&error));
        }
        let array = match self.bring_in(arg, object)? {
            Came::Typed(tensor) => return Ok(tensor),
            Came::Untyped(array) => array,
        };
        let tensor = self.natural(arg, &array)?;
        let kind = tensor.dtype().kind();
        if kind > like.kind() && tensor.numel() > 0 {
            let got = match kind {
                Kind::Bool => "bool",
                Kind::Integer => "int",
                Kind::Float => "float",
                Kind::Complex => "complex",
            };
            return Err(self.raise(&Error::Scalar { op: self.op, arg, got, dtype: like }));
        }
        let cast = expect_range(self.op, arg, &tensor, like).and_then(|()| tensor.cast(like));
        cast.map(|tensor| Arg::Owned(tensor.plain())).map_err(|error| self.raise(&error))
    }

    /// Converts an index. An int, a list of ints and an empty list become int64.
    pub(crate) fn index<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Arg<'a>> {
        self.with_empty_as(arg, object, DType::I64)
    }

    /// Converts a mask. An empty list becomes bool.
    pub(crate) fn mask<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Arg<'a>> {
        self.with_empty_as(arg, object, DType::Bool)
    }

    /// Like [`Call::array`], and also returns the dtype that `to_tensor` gives the values by
    /// default: float32 for Python floats, and complex64 for Python complex numbers.
    pub(crate) fn source<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<(Arg<'a>, DType)> {
        match self.bring_in(arg, object)? {
            Came::Typed(tensor) => {
                let dtype = tensor.dtype();
                Ok((tensor, dtype))
            }
            Came::Untyped(array) => {
                let tensor = self.natural(arg, &array).map(Arg::Owned)?;
                let dtype = match tensor.dtype() {
                    DType::F64 => DType::F32,
                    DType::C128 => DType::C64,
                    dtype => dtype,
                };
                Ok((tensor, dtype))
            }
        }
    }

    /// Returns a tensor over the memory of an array. An array that would need a conversion is an
    /// error.
    pub(crate) fn shared(
        &self,
        arg: &'static str,
        array: &Bound<'py, PyUntypedArray>,
    ) -> PyResult<Tensor> {
        self.expect_no_mask(arg, array)?;
        share(array).map_err(|unfit| self.unfit(arg, array, &unfit))
    }

    /// Converts the target of an in-place operation, which must be a writable tensor or array.
    pub(crate) fn target<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Arg<'a>> {
        let tensor = if let Some(tensor) = self.own(object) {
            Arg::Borrowed(tensor)
        } else if let Ok(array) = object.cast::<PyUntypedArray>() {
            Arg::Owned(self.shared(arg, array)?)
        } else {
            let expected = "a Tensor or a NumPy array, to be written in place";
            return Err(self.not_an_array(arg, object, expected));
        };
        if !tensor.is_writable() {
            return Err(self.raise(&Error::ReadOnly { op: self.op, arg }));
        }
        Ok(tensor)
    }

    /// Runs an operation on `size` elements. If it is large or on a GPU, the GIL is released. A
    /// panic becomes a Python exception.
    pub(crate) fn run<T: Send>(
        &self,
        size: usize,
        work: impl FnOnce() -> inlay::Result<T> + Send,
    ) -> PyResult<T> {
        let label = self.label.as_deref();
        let work = || {
            catch_unwind(AssertUnwindSafe(|| match label {
                Some(label) => inlay::named(label, work),
                None => work(),
            }))
        };
        let waits = size > KEEP_GIL || self.on_gpu;
        let result = if waits { detached(self.py, work) } else { work() };
        match result {
            Ok(result) => result.map_err(|error| self.raise(&error)),
            Err(_) => {
                let text = format!("{}: internal error, please report it", self.op);
                Err(Class::Runtime.error(self.py, text))
            }
        }
    }

    /// Converts the result to a `Tensor` if an argument was one, otherwise to an array.
    pub(crate) fn give(self, tensor: Tensor) -> PyResult<Bound<'py, PyAny>> {
        // NumPy arrays are always on the CPU.
        let tensor = match self.any_tensor || tensor.device() == Device::Cpu {
            true => tensor,
            false => tensor.cpu().map_err(|error| self.raise(&error))?,
        };
        if !self.any_tensor
            && let Some(array) = owned(self.py, &tensor)?
        {
            return Ok(array.into_any());
        }
        let tensor = Bound::new(self.py, PyTensor::new(tensor))?;
        if self.any_tensor { Ok(tensor.into_any()) } else { Ok(view(&tensor)?.into_any()) }
    }

    /// Converts an error of the library to an exception.
    pub(crate) fn raise(&self, error: &Error) -> PyErr {
        raise(self.py, error)
    }

    /// Makes the result a `Tensor`, whatever the arguments are.
    pub(crate) fn make_tensor(&mut self) {
        self.any_tensor = true;
    }

    /// Records that an argument is a tensor.
    #[inline]
    pub(crate) fn saw(&mut self, tensor: &Tensor) {
        self.any_tensor = true;
        self.on_gpu |= tensor.device() == Device::Gpu;
    }

    fn bring_in<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Came<'a, 'py>> {
        if let Some(tensor) = self.own(object) {
            return Ok(Came::Typed(Arg::Borrowed(tensor)));
        }
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            return self.typed(arg, array).map(|tensor| Came::Typed(Arg::Owned(tensor)));
        }
        if is_scalar(object) {
            let array = asarray(object).map_err(|cause| self.wrap(arg, cause))?;
            return self.typed(arg, &array).map(|tensor| Came::Typed(Arg::Owned(tensor)));
        }
        if !is_plain(object) {
            let expected = "a Tensor, a NumPy array, a list or a number";
            return Err(self.not_an_array(arg, object, expected));
        }
        let read = || {
            let array = asarray(object)?;
            // NumPy converts a list of integers on both sides of 2**63 to float64, which loses the
            // low bits.
            if array.dtype().kind() == b'f' && only_ints(object)? {
                let wide = self.py.import("numpy")?.call_method1("asarray", (object, "uint64"))?;
                return Ok(wide.cast_into()?);
            }
            Ok(array)
        };
        read().map(Came::Untyped).map_err(|cause| self.wrap(arg, cause))
    }

    fn typed(&self, arg: &'static str, array: &Bound<'py, PyUntypedArray>) -> PyResult<Tensor> {
        self.expect_no_mask(arg, array)?;
        match share(array) {
            Ok(tensor) => Ok(tensor.plain()),
            Err(Unfit::ByteOrder) => {
                let native = to_native(array).map_err(|cause| self.wrap(arg, cause))?;
                share(&native).map(Tensor::plain).map_err(|unfit| self.unfit(arg, array, &unfit))
            }
            Err(unfit) => Err(self.unfit(arg, array, &unfit)),
        }
    }

    /// Converts a list or number that NumPy has read, with the dtype that NumPy chose.
    fn natural(&self, arg: &'static str, array: &Bound<'py, PyUntypedArray>) -> PyResult<Tensor> {
        share(array).map(Tensor::plain).map_err(|unfit| {
            // NumPy stores integers of more than 64 bits as objects.
            let huge = array.dtype().kind() == b'O' && all_ints(array).unwrap_or(false);
            if huge {
                let (got, expected) = ("a number too large".into(), "one of 64 bits".into());
                return self.raise(&Error::Argument { op: self.op, arg, got, expected });
            }
            self.unfit(arg, array, &unfit)
        })
    }

    fn with_empty_as<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
        dtype: DType,
    ) -> PyResult<Arg<'a>> {
        match self.bring_in(arg, object)? {
            Came::Typed(tensor) => Ok(tensor),
            Came::Untyped(array) => {
                let tensor = self.natural(arg, &array)?;
                if tensor.numel() > 0 {
                    return Ok(Arg::Owned(tensor));
                }
                let cast = tensor.cast(dtype).map(|tensor| Arg::Owned(tensor.plain()));
                cast.map_err(|error| self.raise(&error))
            }
        }
    }
}

/// Whether an object is a Python number, list, tuple or range. NumPy scalars that are derived from
/// a Python number count, too.
fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyBool>()
        || object.is_instance_of::<PyComplex>()
        || object.is_instance_of::<PyRange>()
}
