//! Calls on tensors of PyTorch or Paddle that the library records for gradients. All tensors are
//! plain elements in memory, and nothing watches the call.
//!
//! The call has run like one on arrays. A node of the library's own autograd graph is made for it:
//! the Python class `Recorded` of the bridge. The node has a [`Recording`], which computes the
//! gradients. All but the node itself is done here, because a tiny call in Python code takes three
//! times as long.
#![expect(unsafe_code, reason = "borrows memory that only the GIL protects")]

use std::sync::{Mutex, PoisonError};

use inlay::{Error, Meta, Need, Pullback, ShapeText, Tensor, Value};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyTuple};
use smallvec::SmallVec;

use super::Given;
use super::arguments::{Objects, Values};
use super::entry::Entry;
use super::foreign::Found;
use super::functions::{PyFunction, stand_in};
use super::known::known;
use crate::bridges::{Foreign, Native};
use crate::convert::{Call, KEEP_GIL};
use crate::error::{Class, raise};

/// The derivative of a call, for the node of the call in the library's graph.
///
/// >>> from inlay._inlay import Recording
/// >>> Recording.__name__
/// 'Recording'
#[pyclass(module = "inlay._inlay", frozen)]
pub(crate) struct Recording {
    native: &'static Native,
    pullback: Pullback,
    /// The inputs of the function and its result.
    metas: SmallVec<[Meta; 4]>,
    /// The version of each saved tensor, for a library that does not check it (Paddle).
    versions: SmallVec<[i64; 2]>,
    /// What the node takes when it is made.
    made: Mutex<Option<Made>>,
}

struct Made {
    result: Py<PyAny>,
    saved: Py<PyTuple>,
}

/// Makes a node of the library for a call that has run. Bit `k` of `wanted` stands for argument `k`.
pub(super) fn record<'py>(
    (native, found): (&'static Native, Found),
    entry: &Entry,
    objects: &Objects<'_, 'py>,
    values: Values<'_>,
    wanted: u32,
    result: Tensor,
) -> Given<'py> {
    let Some(py) = objects.iter().flatten().map(|object| object.py()).next() else {
        unreachable!("one of the arguments is a tensor")
    };
    let operation = entry.operation;
    let failed = |error: inlay::Error| raise(py, &error);
    let is_tensor = |k: &usize| operation.arguments[*k].kind.is_tensor();
    let places = || (0..objects.len()).filter(is_tensor);
    let mut metas = SmallVec::<[Meta; 4]>::new();
    for value in values.given() {
        if let Value::Tensor(tensor) = value {
            metas.push(tensor.meta());
        }
    }
    let output = result.meta();
    // What refers to borrowed memory ends here: the code that follows may run Python code, which may
    // give the objects other memory. A view becomes a copy, because the library would not know of it.
    let result = if result.is_foreign() { result.copy().map_err(failed)? } else { result };
    let function = known(operation, objects, values.given()).map_err(failed)?;
    drop(values);
    let flags: SmallVec<[bool; 4]> = places().map(|k| wanted >> k & 1 == 1).collect();
    let pullback =
        function.pullback(&flags, &metas, std::slice::from_ref(&output)).map_err(failed)?;
    metas.push(output);
    let result = native.give(py, operation.name, result)?;

    let mut saved = SmallVec::<[Bound<'py, PyAny>; 4]>::new();
    let needs = pullback.needs();
    for (k, _) in places().zip(needs).filter(|(_, need)| **need == Need::Elements) {
        let Some(object) = objects[k].as_deref() else { continue };
        saved.push(match found.has(k) {
            true => object.clone(),
            false => found.adopt(entry, &operation.arguments[k], object, objects)?,
        });
    }
    if needs[metas.len() - 1] == Need::Elements {
        saved.push(match found.library {
            // A result refers to the node, which holds what is saved. A detached result does not,
            // so it closes no cycle. PyTorch takes care of that itself.
            Foreign::Paddle => result.call_method0(intern!(py, "detach"))?,
            _ => result.clone(),
        });
    }
    let versions = match found.library {
        Foreign::Paddle => saved.iter().map(version).collect::<PyResult<_>>()?,
        _ => SmallVec::new(),
    };
    let made = Made { result: result.unbind(), saved: PyTuple::new(py, saved)?.unbind() };
    let made = Mutex::new(Some(made));
    let recording = Bound::new(py, Recording { native, pullback, metas, versions, made })?;
    let sources = places().filter(|k| wanted >> k & 1 == 1).filter_map(|k| objects[k]);
    let sources = sources.map(|object| object.to_owned());
    let arguments = match found.library {
        // Paddle marks edges of a node with a single argument in no way, see the bridge.
        Foreign::Paddle => {
            (recording, PyList::new(py, sources.collect::<Vec<_>>())?).into_pyobject(py)?
        }
        _ => {
            let mut all = SmallVec::<[Bound<'py, PyAny>; 4]>::new();
            all.push(recording.into_any());
            all.extend(sources);
            PyTuple::new(py, all)?
        }
    };
    found.library.record(py, arguments)
}

fn version(tensor: &Bound<'_, PyAny>) -> PyResult<i64> {
    tensor.getattr(intern!(tensor.py(), "inplace_version"))?.extract()
}

#[pymethods]
impl Recording {
    /// The `forward` of PyTorch's node: gives it what it saves, and returns the result.
    #[staticmethod]
    #[pyo3(signature = (ctx, recording, *_sources))]
    fn enter_torch<'py>(
        ctx: &Bound<'py, PyAny>,
        recording: &Bound<'py, Self>,
        _sources: &Bound<'py, PyTuple>,
    ) -> Given<'py> {
        let py = ctx.py();
        let (result, saved) = recording.get().take(py)?;
        // These are what the methods of a context set, each of them a Python function.
        ctx.setattr(intern!(py, "to_save"), saved)?;
        ctx.setattr(intern!(py, "materialize_grads"), PyBool::new(py, false))?;
        ctx.setattr(intern!(py, "recording"), recording)?;
        if !recording.get().is_differentiable() {
            ctx.setattr(intern!(py, "non_differentiable"), (&result,))?;
        }
        Ok(result)
    }

    /// The `forward` of Paddle's node.
    #[staticmethod]
    fn enter_paddle<'py>(
        ctx: &Bound<'py, PyAny>,
        recording: &Bound<'py, Self>,
        _sources: &Bound<'py, PyAny>,
    ) -> Given<'py> {
        let py = ctx.py();
        let (result, saved) = recording.get().take(py)?;
        ctx.setattr(intern!(py, "saved"), saved)?;
        ctx.setattr(intern!(py, "recording"), recording)?;
        if !recording.get().is_differentiable() {
            ctx.call_method1(intern!(py, "mark_non_differentiable"), (&result,))?;
        }
        Ok(result)
    }

    /// The function of gradients.
    #[getter]
    fn vjp(&self) -> PyFunction {
        PyFunction::of(self.pullback.function().clone())
    }

    /// The inputs of the function of gradients but the last: saved tensors, and the dtype and shape of
    /// those that were not saved.
    fn inputs<'py>(
        &self,
        py: Python<'py>,
        saved: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut saved = saved.iter();
        let items = PyList::empty(py);
        for (meta, need) in self.metas.iter().zip(self.pullback.needs()) {
            match need {
                Need::Elements => items.append(saved.next().ok_or_else(missing)?)?,
                _ => items.append((meta.dtype.name(), PyTuple::new(py, &*sizes(meta))?))?,
            }
        }
        Ok(items)
    }

    /// The gradients of the inputs that need one, or None if the gradients must be recorded
    /// themselves, or if a tensor is anything but plain elements in memory.
    fn gradients<'py>(
        &self,
        py: Python<'py>,
        saved: &Bound<'py, PyTuple>,
        grad: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let op = self.pullback.function().operation().name;
        for (tensor, &before) in saved.iter().zip(&self.versions) {
            let now = version(&tensor)?;
            if now != before {
                return Err(Class::Runtime.error(py, written(op, now, before)));
            }
        }
        if !self.native.is_plain_backward(py) {
            return Ok(None);
        }
        let mut objects = SmallVec::<[Bound<'py, PyAny>; 4]>::new();
        objects.extend(saved.iter());
        objects.push(grad.clone());
        // A result may be large even if all that is read is small.
        let is_large =
            self.metas.iter().any(|meta| meta.numel().is_none_or(|size| size > KEEP_GIL));
        let call = Call::new(py, op);
        // SAFETY: borrowed tensors are used only until the call has run. Until then the GIL is held,
        // since the call is not large, and no Python code runs.
        let read = unsafe { self.native.plain(&objects, is_large, call.watch()) };
        let Some(read) = read else { return Ok(None) };
        let mut read = read.into_iter();
        let mut inputs = SmallVec::<[Tensor; 6]>::new();
        let mut places = SmallVec::<[Option<usize>; 6]>::new();
        for (meta, need) in self.metas.iter().zip(self.pullback.needs()) {
            let (tensor, place) = match need {
                Need::Elements => {
                    (read.next().ok_or_else(missing)?, Some(objects.len() - 1 - read.len()))
                }
                Need::Shape => {
                    let known = stand_in(meta.dtype, &sizes(meta));
                    (known.map_err(|error| raise(py, &error))?, None)
                }
                Need::Nothing => {
                    let any = stand_in(meta.dtype, &[]);
                    (any.map_err(|error| raise(py, &error))?, None)
                }
            };
            inputs.push(tensor);
            places.push(place);
        }
        let upstream = read.next().ok_or_else(missing)?;
        self.expect_shape_of_result(py, op, &upstream)?;
        inputs.push(upstream);
        places.push(Some(objects.len() - 1));
        let read = inputs.iter().zip(&places).filter(|(_, place)| place.is_some());
        let is_large = is_large || read.map(|(input, _)| input.numel()).any(|size| size > KEEP_GIL);
        let size = if is_large { usize::MAX } else { 0 };
        let results = call.run(size, || {
            let inputs: SmallVec<[&Tensor; 6]> = inputs.iter().collect();
            self.pullback.call_shared(&inputs)
        })?;
        // A gradient that is passed on is the object that came.
        let passed = |result: &Tensor| {
            let same = |input: &Tensor| {
                input.data_ptr() == result.data_ptr()
                    && input.dtype() == result.dtype()
                    && input.layout() == result.layout()
            };
            inputs.iter().rposition(same).filter(|_| result.is_foreign()).and_then(|k| places[k])
        };
        let found: SmallVec<[Result<usize, Tensor>; 4]> =
            results.into_iter().map(|result| passed(&result).ok_or(result)).collect();
        // Views of borrowed memory become copies before code of the library runs. So do gradients
        // whose elements share memory, because the library may write them.
        let found = found.into_iter().map(|one| match one {
            Err(tensor) if tensor.is_foreign() || !tensor.is_contiguous() => {
                Ok(Err(tensor.copy()?))
            }
            one => Ok(one),
        });
        let found = found.collect::<inlay::Result<SmallVec<[Result<usize, Tensor>; 4]>>>();
        let found = found.map_err(|error| raise(py, &error))?;
        inputs.into_iter().for_each(Tensor::give_back);
        let list = PyList::empty(py);
        for one in found {
            match one {
                Ok(k) => list.append(&objects[k])?,
                Err(tensor) => list.append(self.native.give(py, op, tensor)?)?,
            }
        }
        Ok(Some(list))
    }
}

impl Recording {
    /// What the node takes when it is made, once.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Made { result, saved }) = made else {
            return Err(PyRuntimeError::new_err("a recording serves one node"));
        };
        Ok((result.into_bound(py), saved.into_bound(py)))
    }

    /// Fails if a gradient has another shape than the result. A program with open sizes can't tell.
    fn expect_shape_of_result(
        &self,
        py: Python<'_>,
        op: &'static str,
        grad: &Tensor,
    ) -> PyResult<()> {
        let expected = self.metas.last().map(sizes).unwrap_or_default();
        if grad.shape() == &*expected {
            return Ok(());
        }
        let (got, expected) = (ShapeText::of(grad.shape()), ShapeText::of(&expected));
        Err(raise(py, &Error::Shape { op, arg: "grad", got, expected }))
    }

    /// Whether the result may have a gradient: integers have none.
    fn is_differentiable(&self) -> bool {
        self.metas.last().is_some_and(|meta| meta.dtype.is_differentiable())
    }
}

fn sizes(meta: &Meta) -> SmallVec<[usize; 4]> {
    meta.shape.iter().map(|dim| dim.known().unwrap_or(0)).collect()
}

#[cold]
fn missing() -> PyErr {
    PyTypeError::new_err("a saved tensor is missing")
}

fn written(op: &str, now: i64, before: i64) -> String {
    format!(
        "{op}: a tensor that the gradient needs was written in place after the call: its version is \
         {now}, expected {before}; pass a clone to the in-place operation"
    )
}
