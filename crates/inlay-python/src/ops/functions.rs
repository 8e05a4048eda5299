//! `Function`: a call without its tensors, for the bridges to other libraries.

use std::ptr::NonNull;
use std::sync::Arc;

use inlay::{DType, Dim, Extent, Layout, Meta, Need, Operation, Tensor, Value, operations};
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::arguments;
use super::kernel::{self, Kernel};
use super::recorded::Recording;
use crate::bridges::{self, Foreign, Native};
use crate::convert::Call;
use crate::dlpack::Subject;
use crate::dtype;
use crate::error::raise;
use crate::tensor::PyTensor;

/// An operation with the values of all arguments but tensors, a derivative of one, or one over a
/// batch. Bridges to other libraries are made of it.
///
/// >>> from inlay._inlay import Function
/// >>> f = Function('scatter', (None, None, None, False))
/// >>> f.text
/// 'scatter(@, @, @, overwrite=False)'
/// >>> f.vjp((True, False, True)).inputs
/// 5
#[pyclass(name = "Function", module = "inlay._inlay", frozen)]
pub(crate) struct PyFunction(Arc<inlay::Function>);

impl PyFunction {
    pub(super) fn of(function: inlay::Function) -> Self {
        PyFunction(Arc::new(function))
    }
}

/// The dtype and the sizes of a tensor, which are None if they are not known.
type Spec<'py> = (Bound<'py, PyString>, Vec<Option<usize>>);

fn metas(specs: &[Spec<'_>]) -> PyResult<Vec<Meta>> {
    let meta = |(dtype, shape): &Spec<'_>| {
        let dims = shape.iter().map(|size| size.map_or_else(Dim::unknown, Dim::Known));
        Ok(Meta { dtype: dtype::parse("function", dtype)?, shape: dims.collect() })
    };
    specs.iter().map(meta).collect()
}

#[pymethods]
impl PyFunction {
    /// The call of an operation. ``values`` has the arguments in declared order. Tensors are not
    /// looked at; a list of tensors tells its length.
    #[new]
    fn new(py: Python<'_>, name: &str, values: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let operation = operations().iter().find(|operation| operation.name == name);
        let Some(operation) = operation else {
            return Err(PyTypeError::new_err(format!("there is no operation {name:?}")));
        };
        let most = operation.arguments.len();
        if values.len() > most {
            let text = format!("{name}: takes {most} arguments, got {}", values.len());
            return Err(PyTypeError::new_err(text));
        }
        function_of(py, operation, values.iter_borrowed().map(Some)).map(PyFunction::of)
    }

    /// Reads the text of a function.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        inlay::Function::parse(text).map(PyFunction::of).map_err(|error| raise(py, &error))
    }

    /// The function that applies functions one after the other. The result of each is the first
    /// input of the next.
    ///
    /// >>> from inlay._inlay import Function
    /// >>> Function.chain([Function('tril', (None,)), Function('triu', (None,))]).text
    /// 'chain(tril(@); triu(@))'
    #[staticmethod]
    fn chain(py: Python<'_>, steps: Vec<PyRef<'_, PyFunction>>) -> PyResult<Self> {
        let steps: Vec<inlay::Function> = steps.iter().map(|step| (*step.0).clone()).collect();
        inlay::Function::chain(&steps).map(PyFunction::of).map_err(|error| raise(py, &error))
    }

    /// The text that describes the function, in any process.
    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    /// The name of the operation.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.operation().name
    }

    /// The number of tensors that the function takes.
    #[getter]
    fn inputs(&self) -> usize {
        self.0.inputs()
    }

    /// The number of results.
    #[getter]
    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    /// For each input, whether it may have a gradient.
    #[getter]
    fn differentiable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.differentiable())
    }

    /// For a function of gradients: for each input of its function, whether its gradient is wanted.
    #[getter]
    fn wanted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.wanted().unwrap_or_default())
    }

    /// The function that returns the gradients of the wanted inputs. It takes the inputs of this
    /// one, its results, and the gradient of each result.
    fn vjp(&self, py: Python<'_>, wanted: Vec<bool>) -> PyResult<Self> {
        self.0.vjp(&wanted).map(PyFunction::of).map_err(|error| raise(py, &error))
    }

    /// The function over a batch, whose axis is at the given position of each input; None for an
    /// input that all items share. The batch axis of a result is the first one.
    fn vmap(&self, py: Python<'_>, axes: Vec<Option<usize>>) -> PyResult<Self> {
        self.0.vmap(&axes).map(PyFunction::of).map_err(|error| raise(py, &error))
    }

    /// How the function uses each input: 0 not at all, 1 only its shape, 2 its elements.
    fn needs<'py>(&self, py: Python<'py>, specs: Vec<Spec<'py>>) -> PyResult<Bound<'py, PyTuple>> {
        let needs = self.0.needs(&metas(&specs)?).map_err(|error| raise(py, &error))?;
        let number = |need: &Need| match need {
            Need::Nothing => 0,
            Need::Shape => 1,
            Need::Elements => 2,
        };
        PyTuple::new(py, needs.iter().map(number))
    }

    /// The dtype and the shape of each result. A size is a number, an ``(input, axis)`` whose size
    /// it is, or None if it depends on values.
    fn infer<'py>(&self, py: Python<'py>, specs: Vec<Spec<'py>>) -> PyResult<Bound<'py, PyList>> {
        let results = self.0.infer(&metas(&specs)?).map_err(|error| raise(py, &error))?;
        let list = PyList::empty(py);
        for (dtype, shape) in results {
            let sizes = PyList::empty(py);
            for extent in shape {
                match extent {
                    Extent::Known(size) => sizes.append(size)?,
                    Extent::Of { input, axis } => sizes.append((input, axis))?,
                    Extent::Open => sizes.append(py.None())?,
                }
            }
            list.append((dtype.name(), sizes))?;
        }
        Ok(list)
    }

    /// The results for these tensors: a list. Each item is a tensor of any library, or a dtype and
    /// a shape, which stand for a tensor whose elements are not read. The results are of the library
    /// of the first tensor that belongs to one.
    fn call<'py>(
        &self,
        py: Python<'py>,
        tensors: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut call = Call::new(py, self.0.operation().name);
        let (inputs, like) = self.inputs_of(&mut call, tensors.try_iter()?)?;
        let borrowed: SmallVec<[&Tensor; 6]> = inputs.iter().collect();
        let results = PyList::empty(py);
        for result in call.run(largest(&inputs), || self.0.call(&borrowed))? {
            results.append(self.give(py, like, result)?)?;
        }
        Ok(results)
    }

    /// Calls the in-place form of the operation, which writes into the first tensor.
    fn write<'py>(&self, py: Python<'py>, tensors: &Bound<'py, PyAny>) -> PyResult<()> {
        let mut call = Call::new(py, self.0.operation().name);
        let (inputs, _) = self.inputs_of(&mut call, tensors.try_iter()?)?;
        let borrowed: SmallVec<[&Tensor; 6]> = inputs.iter().collect();
        let result = call.run(largest(&inputs), || self.0.write(&borrowed));
        // Otherwise the caller does that. Only PyTorch replaces memory.
        if call.watch().was_replaced()
            && let Some(native) = Native::of(py, Foreign::Torch)
        {
            native.count_write(&tensors.get_item(0)?).ok();
        }
        result
    }

    fn __repr__(&self) -> String {
        format!("<Function {}>", self.0.text())
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.text().hash(&mut hasher);
        hasher.finish()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyFunction>().is_ok_and(|other| other.get().0.text() == self.0.text())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let parse = slf.get_type().getattr("parse")?;
        Ok((parse, (slf.get().0.text().to_owned(),)))
    }
}

/// The inputs of a call, and the library that its results belong to.
type Inputs = (SmallVec<[Tensor; 6]>, Option<Foreign>);

impl PyFunction {
    fn inputs_of<'py>(
        &self,
        call: &mut Call<'py>,
        tensors: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<Inputs> {
        let name = call.op();
        let mut inputs = SmallVec::new();
        let mut like = None;
        for object in tensors {
            let object = object?;
            let tensor = if let Some(foreign) = Foreign::of(&object)? {
                like = like.or(Some(foreign));
                foreign.read(Subject { op: name, arg: "tensor" }, &object, call.watch())?
            } else if let Ok(pair) = object.cast_exact::<PyTuple>() {
                let (dtype, shape) = pair.extract::<(Bound<'py, PyString>, Vec<usize>)>()?;
                let dtype = dtype::parse(name, &dtype)?;
                stand_in(dtype, &shape).map_err(|error| call.raise(&error))?
            } else {
                call.array("tensor", &object)?.into_owned()
            };
            inputs.push(tensor);
        }
        Ok((inputs, like))
    }

    /// A result as a tensor of a library, or as one of Inlay's.
    fn give<'py>(
        &self,
        py: Python<'py>,
        like: Option<Foreign>,
        result: Tensor,
    ) -> PyResult<Bound<'py, PyAny>> {
        match like {
            Some(like) => like.give(py, self.0.operation().name, result),
            None => Ok(Bound::new(py, PyTensor::new(result))?.into_any()),
        }
    }
}

/// The number of elements of the largest tensor.
fn largest(tensors: &[Tensor]) -> usize {
    tensors.iter().map(Tensor::numel).max().unwrap_or(0)
}

/// The function of a call of an operation with these arguments, in declared order.
fn function_of<'a, 'py: 'a>(
    py: Python<'py>,
    operation: &'static Operation,
    objects: impl Iterator<Item = Option<Borrowed<'a, 'py, PyAny>>>,
) -> PyResult<inlay::Function> {
    let mut call = Call::new(py, operation.name);
    let mut lists = SmallVec::<[usize; 2]>::new();
    let mut constants = SmallVec::<[Value<'static>; 8]>::new();
    for (argument, object) in operation.arguments.iter().zip(objects) {
        let object = object.filter(|object| !object.is_none());
        constants.push(match object {
            _ if argument.kind.is_tensor() => Value::Absent,
            Some(object) if argument.kind.has_tensors() => {
                lists.push(object.len()?);
                Value::Absent
            }
            Some(object) => arguments::constant(&mut call, argument, &object)?,
            None => Value::Absent,
        });
    }
    let function = inlay::Function::new(operation.name, &constants, &lists);
    function.map_err(|error| raise(py, &error))
}

/// A tensor of these sizes over a single element, for an input of which only the sizes are read.
#[expect(unsafe_code, reason = "makes a tensor over static memory")]
pub(super) fn stand_in(dtype: DType, shape: &[usize]) -> inlay::Result<Tensor> {
    /// The element is zero in every dtype.
    static ZERO: [u64; 2] = [0; 2];
    let strides = SmallVec::<[isize; 6]>::from_elem(0, shape.len());
    let layout = Layout::over(shape, &strides, 0);
    let ptr = NonNull::from(&ZERO).cast();
    // SAFETY: the bytes are static and never written, and hold one element of any dtype.
    unsafe { Tensor::from_foreign(ptr, size_of_val(&ZERO), layout, dtype, false, ()) }
}

/// Converts a tensor argument that is a number, a list or an array, by the rules of the operation. A
/// number takes the dtype `like`, if one is given. The result shares no memory with the argument.
#[pyfunction]
#[pyo3(signature = (name, argument, value, like=None))]
fn _argument<'py>(
    py: Python<'py>,
    name: &str,
    argument: usize,
    value: &Bound<'py, PyAny>,
    like: Option<&Bound<'py, PyAny>>,
) -> PyResult<PyTensor> {
    let operation = operations().iter().find(|operation| operation.name == name);
    let declared = operation.and_then(|operation| operation.arguments.get(argument));
    let (Some(operation), Some(declared)) = (operation, declared) else {
        return Err(PyTypeError::new_err(format!("there is no argument {argument} of {name:?}")));
    };
    let mut call = Call::new(py, operation.name);
    let like = dtype::parse_optional(operation.name, like)?;
    arguments::tensor_to_save(&mut call, declared, value, like).map(PyTensor::new)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFunction>()?;
    module.add_class::<Recording>()?;
    module.add_class::<Kernel>()?;
    module.add_function(wrap_pyfunction!(kernel::_call_chain, module)?)?;
    bridges::register(module)?;
    module.add_function(wrap_pyfunction!(_argument, module)?)
}
