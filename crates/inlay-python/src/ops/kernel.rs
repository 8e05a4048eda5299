//! The kernels of `torch.ops.inlay.*`: callable objects that PyTorch's dispatcher calls.
//!
//! A call on plain tensors takes the short way, without Python code. All others go to the kernel that
//! the bridge has written in Python.
#![expect(unsafe_code, reason = "borrows memory that only the GIL protects")]

use inlay::{ArgumentKind, Tensor};
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::arguments::MOST;
use super::entry::Entry;
use super::{Ending, Given};
use crate::bridges::{Foreign, Native};
use crate::convert::Call;
use crate::error::raise;

/// A kernel of an operation. ``places`` has the number of Inlay's argument for each argument of the
/// schema, and ``names`` their names. ``skips`` arguments before them are only for ``other``, the
/// kernel that takes the other calls. ``records`` says whether this is the kernel of autograd, which
/// makes nodes for gradients.
#[pyclass(name = "Kernel", module = "inlay._inlay", frozen)]
pub(crate) struct Kernel {
    entry: &'static Entry,
    places: SmallVec<[usize; MOST]>,
    names: SmallVec<[Py<PyString>; MOST]>,
    other: Py<PyAny>,
    skips: usize,
    ending: Ending,
}

#[pymethods]
impl Kernel {
    #[new]
    fn new(
        name: &str,
        places: Vec<usize>,
        names: Vec<Py<PyString>>,
        other: Py<PyAny>,
        skips: usize,
        records: bool,
    ) -> PyResult<Self> {
        let entry = Entry::find(name, false)
            .ok_or_else(|| PyTypeError::new_err(format!("there is no operation {name:?}")))?;
        let count = entry.operation.arguments.len();
        if places.len() != names.len() || places.iter().any(|&place| place >= count) {
            return Err(PyTypeError::new_err(format!(
                "{name}: the places don't fit the operation"
            )));
        }
        let ending = if records { Ending::Node } else { Ending::Plain };
        let (places, names) = (places.into(), names.into());
        Ok(Kernel { entry, places, names, other, skips, ending })
    }

    #[pyo3(signature = (*args, **keywords))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> Given<'py> {
        match self.short(py, args, keywords)? {
            Some(result) => Ok(result),
            None => self.other.bind(py).call(args, keywords),
        }
    }
}

impl Kernel {
    fn short<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let arguments = self.entry.operation.arguments;
        let mut given = SmallVec::<[(usize, Bound<'py, PyAny>); MOST]>::new();
        for (object, &place) in args.iter().skip(self.skips).zip(&self.places) {
            given.push((place, object));
        }
        for (keyword, object) in keywords.into_iter().flatten() {
            let same = |name: &Py<PyString>| {
                name.as_ptr() == keyword.as_ptr() || keyword.eq(name).unwrap_or(false)
            };
            match self.names.iter().position(same) {
                Some(k) => given.push((self.places[k], object)),
                None => return Ok(None),
            }
        }
        for (place, object) in &mut given {
            match arguments[*place].kind {
                // A single axis or bound arrives as a list, which would stand for several axes.
                ArgumentKind::AxisList | ArgumentKind::BoundList => {
                    if let Ok(list) = object.cast::<PyList>()
                        && list.len() == 1
                    {
                        *object = list.get_item(0)?;
                    }
                }
                ArgumentKind::DType | ArgumentKind::Device if !object.is_none() => return Ok(None),
                _ => {}
            }
        }
        let mut objects: [Option<Borrowed<'_, 'py, PyAny>>; MOST] = [None; MOST];
        for (place, object) in &given {
            objects[*place] = (!object.is_none()).then(|| object.as_borrowed());
        }
        super::call_short(py, self.entry, &objects[..arguments.len()], self.ending)
    }
}

/// Calls a function on plain tensors of a library, without a record. Returns `None` if one of them is
/// anything else.
fn call_plain<'py>(
    py: Python<'py>,
    function: &inlay::Function,
    objects: &[Bound<'py, PyAny>],
) -> PyResult<Option<SmallVec<[Bound<'py, PyAny>; 1]>>> {
    let Some(library) = objects.first().map(Foreign::of).transpose()?.flatten() else {
        return Ok(None);
    };
    let Some(native) = Native::of(py, library) else { return Ok(None) };
    let op = function.operation().name;
    let call = Call::new(py, op);
    // SAFETY: borrowed tensors end before code of the library runs: results are fresh, or copied. The
    // GIL is held until then, because borrowed tensors are small.
    let inputs = unsafe { native.plain(objects, false, call.watch()) };
    let Some(inputs) = inputs else { return Ok(None) };
    let size = inputs.iter().map(Tensor::numel).max().unwrap_or(0);
    let results = call.run(size, || {
        let results = function.call(&inputs.iter().collect::<SmallVec<[&Tensor; 8]>>())?;
        // The library knows nothing of views, and has been told that results are contiguous.
        let own = |result: Tensor| match result.is_foreign() || !result.is_contiguous() {
            true => result.copy(),
            false => Ok(result),
        };
        results.into_iter().map(own).collect::<inlay::Result<SmallVec<[Tensor; 1]>>>()
    })?;
    inputs.into_iter().for_each(Tensor::give_back);
    let given = results.into_iter().map(|result| native.give(py, op, result));
    given.collect::<PyResult<_>>().map(Some)
}

/// The kernel of `torch.ops.inlay.chain`. Calls `other` for tensors that are not plain.
#[pyfunction]
pub(super) fn _call_chain<'py>(
    py: Python<'py>,
    other: &Bound<'py, PyAny>,
    text: &Bound<'py, PyString>,
    inputs: Vec<Bound<'py, PyAny>>,
) -> Given<'py> {
    let function = inlay::Function::parse(&text.to_cow()?).map_err(|error| raise(py, &error))?;
    match call_plain(py, &function, &inputs)?.and_then(|mut results| results.pop()) {
        Some(result) => Ok(result),
        None => other.call1((text, inputs)),
    }
}
