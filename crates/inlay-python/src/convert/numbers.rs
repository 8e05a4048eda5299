//! Conversion of arguments that are numbers.

use inlay::{DType, Error, Kind, Scalar, Tensor};
use numpy::PyUntypedArray;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple};

use super::Call;
use crate::error::{Class, described};

impl<'py> Call<'py> {
    /// Converts an integer: any object with `__index__` whose value fits in an `i64`.
    pub(crate) fn integer(&self, arg: &'static str, object: &Bound<'py, PyAny>) -> PyResult<i64> {
        self.whole(arg, object)?.ok_or_else(|| {
            let got = object.str().map_or_else(|_| "too large".into(), |text| text.to_string());
            let expected = "an integer of 64 bits".to_owned();
            self.raise(&Error::Argument { op: self.op, arg, got, expected })
        })
    }

    /// Like [`Call::integer`], but a value that does not fit is clamped to the range of `i64`. This
    /// does not change the meaning of slice bounds and diagonal offsets.
    pub(crate) fn bound(&self, arg: &'static str, object: &Bound<'py, PyAny>) -> PyResult<i64> {
        if let Some(value) = self.whole(arg, object)? {
            return Ok(value);
        }
        Ok(if object.lt(0)? { i64::MIN } else { i64::MAX })
    }

    /// Converts a Python number, a NumPy scalar or another object whose `item()` returns a number.
    pub(crate) fn scalar(&self, arg: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Scalar> {
        if let Some(number) = number_of(object)? {
            return Ok(number);
        }
        // NumPy scalars and 0-D tensors convert themselves by `item`.
        let item = object.call_method0("item").ok();
        match item.map(|item| number_of(&item)).transpose()?.flatten() {
            Some(number) => Ok(number),
            None => {
                let text = format!("{}: {arg} is {}", self.op, described(object));
                Err(Class::Type.error(self.py, format!("{text}, expected a number")))
            }
        }
    }

    /// Returns the integer, or `None` if it does not fit in an `i64`.
    fn whole(&self, arg: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Option<i64>> {
        match object.extract::<i64>() {
            Ok(value) => Ok(Some(value)),
            Err(cause) if cause.is_instance_of::<PyOverflowError>(self.py) => Ok(None),
            Err(cause) => {
                let text = format!("{}: {arg} is {}", self.op, described(object));
                let error = Class::Type.error(self.py, format!("{text}, expected an integer"));
                error.set_cause(self.py, Some(cause));
                Err(error)
            }
        }
    }
}

/// Returns the value of a Python number. Other objects, also NumPy scalars, give `None`.
pub(super) fn number_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    Ok(if object.is_exact_instance_of::<PyFloat>() {
        Some(Scalar::Float(object.extract()?))
    } else if object.is_exact_instance_of::<PyInt>() {
        // An integer that does not fit in an `i64` gives `None`. The caller reports the error.
        object.extract().ok().map(Scalar::Int)
    } else if object.is_exact_instance_of::<PyBool>() {
        Some(Scalar::Bool(object.extract()?))
    } else if object.is_exact_instance_of::<PyComplex>() {
        Some(Scalar::Complex(object.extract()?))
    } else {
        None
    })
}

/// Fails if `dtype` is an integer dtype and a value of the list is outside of its range.
pub(super) fn expect_range(
    op: &'static str,
    arg: &'static str,
    list: &Tensor,
    dtype: DType,
) -> inlay::Result<()> {
    let Some((low, high)) = dtype.integer_range() else { return Ok(()) };
    let outside = |value: &i128| !(low..=high).contains(value);
    let found = match list.dtype() {
        from if from == dtype || from.kind() == Kind::Bool => None,
        DType::U64 => list.to_vec::<u64>()?.into_iter().map(i128::from).find(outside),
        _ => list.cast(DType::I64)?.to_vec::<i64>()?.into_iter().map(i128::from).find(outside),
    };
    let Some(value) = found else { return Ok(()) };
    let expected = format!("a value of {dtype}: {low} to {high}");
    Err(Error::Argument { op, arg, got: value.to_string(), expected })
}

/// Whether an object is an integer, or a nested list that is not empty and has only integers.
pub(super) fn only_ints(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
        return Ok(object.is_instance_of::<PyInt>());
    }
    let mut some = false;
    for item in object.try_iter()? {
        if !only_ints(&item?)? {
            return Ok(false);
        }
        some = true;
    }
    Ok(some)
}

/// Whether all elements of an array of objects are integers.
pub(super) fn all_ints(array: &Bound<'_, PyUntypedArray>) -> PyResult<bool> {
    for item in array.getattr("flat")?.try_iter()? {
        if !item?.is_instance_of::<PyInt>() {
            return Ok(false);
        }
    }
    Ok(true)
}
