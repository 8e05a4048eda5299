//! Conversion of nested lists. NumPy reads lists of numbers and of its own arrays.

use inlay::{DType, Kind};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyFloat, PyInt, PyList, PyRange, PySequence, PyString, PyTuple,
};

use super::arrays::Came;
use super::numbers::only_ints;
use super::protocols::Protocol;
use super::{Arg, Call};
use crate::numpy::{asarray, asarray_of, descr, dtype_of_number, is_scalar};
use crate::tensor::PyTensor;

/// The largest number of nested lists. NumPy's arrays have at most 64 dimensions.
const DEEPEST: usize = 64;

/// What the items of a nested list are. An item that is none of these is left to NumPy, which
/// refuses it.
#[derive(Default)]
pub(super) struct Contents {
    /// The widest kind of the Python numbers, if there are any.
    numbers: Option<Kind>,
    /// Whether there are NumPy arrays or scalars.
    arrays: bool,
    /// Whether there are tensors, or arrays of other libraries.
    tensors: bool,
}

impl Contents {
    /// Looks at all items of a list. An object that is not a list is a single item.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<Contents> {
        let mut contents = Contents::default();
        each_item(object, 0, &mut |item| {
            contents.add(item);
            Ok(())
        })?;
        Ok(contents)
    }

    /// Whether the list has no dtype of its own.
    pub(super) fn is_plain(&self) -> bool {
        !self.arrays && !self.tensors
    }

    #[inline]
    fn add(&mut self, item: &Bound<'_, PyAny>) {
        match kind_of(item) {
            Some(kind) => self.numbers = self.numbers.max(Some(kind)),
            None if is_numpy(item) => self.arrays = true,
            None => self.tensors |= is_tensor(item) || Protocol::of(item).is_some(),
        }
    }
}

/// The kind of a Python number. A `range` counts as a number. NumPy scalars have no kind here,
/// although some are derived from Python's numbers.
#[inline]
pub(super) fn kind_of(item: &Bound<'_, PyAny>) -> Option<Kind> {
    if item.is_exact_instance_of::<PyFloat>() {
        Some(Kind::Float)
    } else if item.is_exact_instance_of::<PyInt>() {
        Some(Kind::Integer)
    } else if is_numpy(item) || is_tensor(item) {
        None
    } else if item.is_instance_of::<PyBool>() {
        Some(Kind::Bool)
    } else if item.is_instance_of::<PyInt>() || item.is_instance_of::<PyRange>() {
        Some(Kind::Integer)
    } else if item.is_instance_of::<PyFloat>() {
        Some(Kind::Float)
    } else if item.is_instance_of::<PyComplex>() {
        Some(Kind::Complex)
    } else {
        None
    }
}

fn is_numpy(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyUntypedArray>() || is_scalar(item)
}

pub(super) fn is_tensor(item: &Bound<'_, PyAny>) -> bool {
    item.is_exact_instance_of::<PyTensor>()
}

/// Whether NumPy would read an item as a nested list.
pub(super) fn is_list(item: &Bound<'_, PyAny>) -> bool {
    if item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>() {
        return true;
    }
    let is_leaf = kind_of(item).is_some()
        || is_numpy(item)
        || is_tensor(item)
        || item.is_instance_of::<PyString>()
        || item.is_instance_of::<PyBytes>();
    !is_leaf && item.cast::<PySequence>().is_ok() && Protocol::of(item).is_none()
}

/// Calls `visit` with each item of a nested list that is not a list itself. Fails for a list that is
/// too deep or contains itself.
fn each_item<'py>(
    object: &Bound<'py, PyAny>,
    depth: usize,
    visit: &mut impl FnMut(&Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    // Most items are numbers, so these are recognized first.
    let is_number =
        object.is_exact_instance_of::<PyFloat>() || object.is_exact_instance_of::<PyInt>();
    if is_number || !is_list(object) {
        return visit(object);
    }
    if depth == DEEPEST {
        return Err(PyValueError::new_err(format!("lists are nested more than {DEEPEST} deep")));
    }
    let mut inside = |item: Bound<'py, PyAny>| each_item(&item, depth + 1, visit);
    if let Ok(list) = object.cast::<PyList>() {
        list.iter().try_for_each(inside)
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        tuple.iter().try_for_each(inside)
    } else {
        object.try_iter()?.try_for_each(|item| inside(item?))
    }
}

impl<'py> Call<'py> {
    /// Converts a Python number, a list, a tuple or a range.
    pub(super) fn list<'a>(
        &mut self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Came<'a, 'py>> {
        let contents = Contents::of(object).map_err(|cause| self.wrap(arg, cause))?;
        if contents.tensors {
            let tensor = self.stacked(arg, object)?;
            return Ok(Came::Typed(Arg::Owned(tensor)));
        }
        if contents.arrays {
            let array = self.list_of_arrays(arg, object, contents.numbers)?;
            return self.typed(arg, &array).map(|tensor| Came::Typed(Arg::Owned(tensor)));
        }
        let read = || {
            let array = asarray(object)?;
            // NumPy converts a list of integers on both sides of 2**63 to float64, which loses the
            // low bits.
            if array.dtype().kind() == b'f' && only_ints(object)? {
                return asarray_of(object, &descr(self.py, DType::U64)?);
            }
            Ok(array)
        };
        read().map(Came::Untyped).map_err(|cause| self.wrap(arg, cause))
    }

    /// Reads a list that contains NumPy arrays or scalars. Their dtypes decide. Python numbers,
    /// whose widest kind is `numbers`, count only if their kind is wider.
    fn list_of_arrays(
        &self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
        numbers: Option<Kind>,
    ) -> PyResult<Bound<'py, PyUntypedArray>> {
        let read = || {
            let mut descrs = Vec::<Bound<'py, PyAny>>::new();
            each_item(object, 0, &mut |item| {
                if let Ok(array) = item.cast::<PyUntypedArray>() {
                    self.expect_no_mask(arg, array)?;
                }
                if numbers.is_some() && is_numpy(item) {
                    let descr = item.getattr(intern!(self.py, "dtype"))?;
                    if !descrs.iter().any(|other| other.is(&descr)) {
                        descrs.push(descr);
                    }
                }
                Ok(())
            })?;
            match numbers {
                None => asarray(object),
                Some(kind) => asarray_of(object, &self.common_descr(&descrs, kind)?),
            }
        };
        read().map_err(|cause| self.wrap(arg, cause))
    }

    /// The dtype of typed items with these dtypes, next to Python numbers of a kind.
    fn common_descr(
        &self,
        descrs: &[Bound<'py, PyAny>],
        numbers: Kind,
    ) -> PyResult<Bound<'py, PyArrayDescr>> {
        let dtype = |descr: &Bound<'py, PyAny>| {
            let number = descr.cast::<PyArrayDescr>().ok()?.num();
            dtype_of_number(self.py, number)
        };
        // NumPy's own rule does not know that numbers yield to bfloat16.
        if let Some(first) = descrs.first().and_then(dtype)
            && first.kind() >= numbers
            && descrs.iter().all(|descr| dtype(descr) == Some(first))
        {
            return descr(self.py, first);
        }
        let example = match numbers {
            Kind::Bool => PyBool::new(self.py, false).to_owned().into_any(),
            Kind::Integer => PyInt::new(self.py, 0).into_any(),
            Kind::Float => PyFloat::new(self.py, 0.0).into_any(),
            Kind::Complex => PyComplex::from_doubles(self.py, 0.0, 0.0).into_any(),
        };
        let all: Vec<&Bound<'py, PyAny>> = descrs.iter().chain([&example]).collect();
        let numpy = self.py.import(intern!(self.py, "numpy"))?;
        Ok(numpy
            .getattr(intern!(self.py, "result_type"))?
            .call1(PyTuple::new(self.py, all)?)?
            .cast_into()?)
    }
}
