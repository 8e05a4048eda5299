//! Conversion of arguments that become tensors.

use inlay::{DType, Error, Kind, Tensor};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyRange, PyTuple};

use super::list::Contents;
use super::numbers::{all_ints, expect_range, number_of};
use super::protocols::Protocol;
use super::{Arg, Call};
use crate::dlpack::{Purpose, Table};
use crate::numpy::{Unfit, asarray, is_scalar, share, to_native};
use crate::tensor::PyTensor;

/// An argument before its dtype is decided.
pub(super) enum Came<'a, 'py> {
    /// A tensor, an array, or a list that contains one, with a dtype of its own.
    Typed(Arg<'a>),
    /// A NumPy scalar. Next to a tensor it takes the tensor's dtype; alone it has its own.
    Scalar(Tensor),
    /// A Python number or a list of them, read by NumPy. The operation chooses the dtype.
    Untyped(Bound<'py, PyUntypedArray>),
}

/// How much the dtype of an operand counts. An operand takes the dtype of one that counts more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A Python number or a list of them.
    Number,
    /// A NumPy scalar.
    Scalar,
    /// A tensor, an array, or a list that contains one.
    Array,
}

impl Weight {
    fn of(object: &Bound<'_, PyAny>) -> Weight {
        if object.is_exact_instance_of::<PyTensor>() {
            Weight::Array
        } else if is_scalar(object) {
            Weight::Scalar
        } else if is_plain(object) && Contents::of(object).is_ok_and(|list| list.is_plain()) {
            Weight::Number
        } else {
            Weight::Array
        }
    }
}

impl<'py> Call<'py> {
    /// Whether the first of two operands takes the dtype of the second one.
    pub(crate) fn yields(first: &Bound<'py, PyAny>, second: &Bound<'py, PyAny>) -> bool {
        let weight = Weight::of(first);
        weight < Weight::Array && weight < Weight::of(second)
    }

    /// Whether both operands are NumPy scalars. Then each of them keeps its dtype.
    pub(crate) fn are_scalars(first: &Bound<'py, PyAny>, second: &Bound<'py, PyAny>) -> bool {
        is_scalar(first) && is_scalar(second)
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
            Came::Scalar(scalar) => Ok(Arg::Owned(scalar)),
            Came::Untyped(array) => self.natural(arg, &array).map(Arg::Owned),
        }
    }

    /// Like [`Call::array`], but a Python number, a list of them or a NumPy scalar takes the dtype
    /// `like`. The kind of `like` must be the same or wider: 1 becomes 1.0 for a float tensor, but
    /// 1.5 is an error for an integer tensor.
    pub(crate) fn values<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
        like: DType,
    ) -> PyResult<Arg<'a>> {
        if let Some(number) = number_of(object)? {
            let tensor = Tensor::number(self.op, arg, number, like);
            return tensor.map(Arg::Owned).map_err(|error| self.raise(&error));
        }
        let tensor = match self.bring_in(arg, object)? {
            Came::Typed(tensor) => return Ok(tensor),
            Came::Scalar(scalar) if scalar.dtype() == like => return Ok(Arg::Owned(scalar)),
            Came::Scalar(scalar) if scalar.dtype().kind() > like.kind() => {
                return Err(self.too_wide(arg, object, scalar.dtype(), like));
            }
            Came::Scalar(scalar) => scalar,
            Came::Untyped(array) => self.natural(arg, &array)?,
        };
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
        let tensor = match self.bring_in(arg, object)? {
            Came::Typed(tensor) => tensor,
            Came::Scalar(scalar) => Arg::Owned(scalar),
            Came::Untyped(array) => {
                let tensor = self.natural(arg, &array)?;
                let dtype = match tensor.dtype() {
                    DType::F64 => DType::F32,
                    DType::C128 => DType::C64,
                    dtype => dtype,
                };
                return Ok((Arg::Owned(tensor), dtype));
            }
        };
        let dtype = tensor.dtype();
        Ok((tensor, dtype))
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

    /// Converts the target of an in-place operation: a tensor, an array, or an array of another
    /// library that shares its memory. It must be writable.
    pub(crate) fn target<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Arg<'a>> {
        let tensor = if let Some(tensor) = self.own(object) {
            Arg::Borrowed(tensor)
        } else if let Some(table) = Table::of(object) {
            Arg::Owned(self.through_table(arg, object, table, Purpose::Write)?)
        } else if let Ok(array) = object.cast::<PyUntypedArray>() {
            Arg::Owned(self.shared(arg, array)?)
        } else if let Some(protocol) = Protocol::of(object) {
            Arg::Owned(self.foreign_target(arg, object, protocol)?)
        } else {
            let expected = "a Tensor or a NumPy array, to be written in place";
            return Err(self.not_an_array(arg, object, expected));
        };
        if !tensor.is_writable() {
            return Err(self.raise(&Error::ReadOnly { op: self.op, arg }));
        }
        Ok(tensor)
    }

    /// Converts an argument as far as that is possible without the dtype of another one.
    pub(super) fn bring_in<'a>(
        &mut self,
        arg: &'static str,
        object: &'a Bound<'py, PyAny>,
    ) -> PyResult<Came<'a, 'py>> {
        if let Some(tensor) = self.own(object) {
            return Ok(Came::Typed(Arg::Borrowed(tensor)));
        }
        if let Some(table) = Table::of(object) {
            let tensor = self.through_table(arg, object, table, Purpose::Read)?;
            return Ok(Came::Typed(Arg::Owned(tensor.plain())));
        }
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            return self.typed(arg, array).map(|tensor| Came::Typed(Arg::Owned(tensor)));
        }
        if is_scalar(object) {
            let array = asarray(object).map_err(|cause| self.wrap(arg, cause))?;
            return self.typed(arg, &array).map(Came::Scalar);
        }
        if is_plain(object) {
            return self.list(arg, object);
        }
        if let Some(protocol) = Protocol::of(object) {
            let tensor = self.foreign(arg, object, protocol)?;
            return Ok(Came::Typed(Arg::Owned(tensor.plain())));
        }
        Err(self.not_an_array(arg, object, "a Tensor, a NumPy array, a list or a number"))
    }

    /// Converts an array, in shared memory if its byte order permits.
    pub(super) fn typed(
        &self,
        arg: &'static str,
        array: &Bound<'py, PyUntypedArray>,
    ) -> PyResult<Tensor> {
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
        let array = match self.bring_in(arg, object)? {
            Came::Typed(tensor) => return Ok(tensor),
            Came::Scalar(scalar) => return Ok(Arg::Owned(scalar)),
            Came::Untyped(array) => array,
        };
        let tensor = self.natural(arg, &array)?;
        if tensor.numel() > 0 {
            return Ok(Arg::Owned(tensor));
        }
        let cast = tensor.cast(dtype).map(|tensor| Arg::Owned(tensor.plain()));
        cast.map_err(|error| self.raise(&error))
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
