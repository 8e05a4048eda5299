//! Conversion of nested lists. NumPy reads lists of numbers and of its own arrays. Lists that
//! contain tensors are stacked, so that the tensors keep their gradient history.

use inlay::{DType, Device, Kind, Tensor};
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
use crate::error::Class;
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
fn kind_of(item: &Bound<'_, PyAny>) -> Option<Kind> {
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

fn is_tensor(item: &Bound<'_, PyAny>) -> bool {
    item.is_exact_instance_of::<PyTensor>()
}

/// Whether NumPy would read an item as a nested list.
fn is_list(item: &Bound<'_, PyAny>) -> bool {
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

/// A part of a list that contains tensors.
enum Part<'py> {
    /// A tensor.
    Tensor(Tensor),
    /// An array. It goes to the device of the tensors.
    Array(Tensor),
    /// Numbers, or a list of them, which take the dtype of the tensors and go to their device.
    Numbers(Bound<'py, PyAny>),
    /// A list that contains a tensor.
    List(Vec<Part<'py>>),
}

/// What the tensors and arrays in a list have in common.
#[derive(Default)]
struct Common {
    dtype: Option<DType>,
    /// `None` if all of them are arrays.
    device: Option<Device>,
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

    /// Converts a list that contains tensors, by the operation `stack`.
    fn stacked(&mut self, arg: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Tensor> {
        let mut common = Common::default();
        let part = self.part(arg, object, &mut common)?;
        let Some(dtype) = common.dtype else {
            // Another thread has taken the tensors out of the list meanwhile.
            return Err(self.not_an_array(arg, object, "a list of numbers and tensors"));
        };
        let tensor = self.joined(arg, part, dtype, common.device)?;
        Ok(if common.device.is_none() { tensor.plain() } else { tensor })
    }

    /// Converts the tensors and arrays in a list, which must have one dtype.
    fn part(
        &mut self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
        common: &mut Common,
    ) -> PyResult<Part<'py>> {
        if is_list(object) {
            let contents = Contents::of(object).map_err(|cause| self.wrap(arg, cause))?;
            if contents.is_plain() {
                return Ok(Part::Numbers(object.clone()));
            }
            let items = object.try_iter().map_err(|cause| self.wrap(arg, cause))?;
            let part = |item: PyResult<Bound<'py, PyAny>>| {
                let item = item.map_err(|cause| self.wrap(arg, cause))?;
                self.part(arg, &item, common)
            };
            return items.map(part).collect::<PyResult<_>>().map(Part::List);
        }
        if kind_of(object).is_some() || is_scalar(object) {
            return Ok(Part::Numbers(object.clone()));
        }
        let tensor = self.array(arg, object)?.into_owned();
        let dtype = *common.dtype.get_or_insert(tensor.dtype());
        if dtype != tensor.dtype() {
            let text = format!(
                "{}: {arg} is a list of tensors of dtypes {dtype} and {}, expected one dtype",
                self.op,
                tensor.dtype()
            );
            return Err(Class::Type.error(self.py, text));
        }
        if !is_tensor(object) {
            return Ok(Part::Array(tensor));
        }
        common.device.get_or_insert(tensor.device());
        Ok(Part::Tensor(tensor))
    }

    fn joined(
        &mut self,
        arg: &'static str,
        part: Part<'py>,
        dtype: DType,
        device: Option<Device>,
    ) -> PyResult<Tensor> {
        let items = match part {
            Part::Tensor(tensor) => return Ok(tensor),
            Part::Array(tensor) => return self.moved(tensor, device),
            Part::Numbers(object) => {
                let tensor = self.values(arg, &object, dtype)?.into_owned();
                return self.moved(tensor, device);
            }
            Part::List(items) => items,
        };
        let items = items.into_iter().map(|item| self.joined(arg, item, dtype, device));
        let items = items.collect::<PyResult<Vec<Tensor>>>()?;
        self.expect_one_shape(arg, &items)?;
        let size = items.iter().map(Tensor::numel).fold(0, usize::saturating_add);
        // The user's name is for the operation itself.
        let label = self.label.take();
        let stacked = self.run(size, || Tensor::stack(&items.iter().collect::<Vec<&Tensor>>(), 0));
        self.label = label;
        stacked
    }

    /// Copies numbers and arrays to the device of the tensors.
    fn moved(&self, tensor: Tensor, device: Option<Device>) -> PyResult<Tensor> {
        match device {
            Some(device) if device != tensor.device() => {
                self.run(tensor.numel(), || tensor.to(device))
            }
            _ => Ok(tensor),
        }
    }

    /// Fails for items of different shapes. Sizes that are not known yet are checked by `stack`.
    fn expect_one_shape(&self, arg: &'static str, items: &[Tensor]) -> PyResult<()> {
        let known = |tensor: &Tensor| !tensor.shape().contains(&Tensor::UNKNOWN);
        let Some(first) = items.first().filter(|first| known(first)) else { return Ok(()) };
        let other = items.iter().find(|item| known(item) && item.shape() != first.shape());
        let Some(other) = other else { return Ok(()) };
        let text = format!(
            "{}: {arg} is a list of items of shapes {:?} and {:?}, expected one shape",
            self.op,
            first.shape(),
            other.shape()
        );
        Err(Class::Value.error(self.py, text))
    }
}
