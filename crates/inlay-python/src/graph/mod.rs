//! The classes that implement `inlay.static` and `inlay.jit`.

mod traces;

use std::path::PathBuf;
use std::sync::Arc;

use inlay::{Plan, Program, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::convert::Call;
use crate::dtype;
use crate::error::{Class, type_name};
use crate::tensor::PyTensor;

pub(crate) use traces::{expect_sizes, sizes_needed};

/// Returns the file and line of the innermost Python frame outside of this package.
fn site() -> Option<String> {
    Python::attach(|py| {
        let find = || -> PyResult<Option<String>> {
            let mut frame = py.import("sys")?.getattr("_getframe")?.call0()?;
            loop {
                let code = frame.getattr("f_code")?;
                let file: String = code.getattr("co_filename")?.extract()?;
                let module = frame.getattr("f_globals")?.get_item("__name__");
                let module = module.and_then(|name| name.extract::<String>()).unwrap_or_default();
                if module != "inlay" && !module.starts_with("inlay.") {
                    let line: usize = frame.getattr("f_lineno")?.extract()?;
                    let file = file.rsplit(['/', '\\']).next().unwrap_or(&file);
                    return Ok(Some(format!("{file}:{line}")));
                }
                frame = frame.getattr("f_back")?;
                if frame.is_none() {
                    return Ok(None);
                }
            }
        };
        // The line only improves messages, so a failed lookup is not an error.
        find().ok().flatten()
    })
}

/// A list of operations that were recorded on symbolic tensors. ``run`` executes them on values.
#[pyclass(name = "Program", module = "inlay.static", frozen)]
pub(crate) struct PyProgram {
    inner: Program,
}

impl PyProgram {
    /// Converts `fetch_list`: a symbolic tensor, the name of an output or input, or an iterable of
    /// them. None stands for all outputs.
    fn fetches(
        &self,
        call: &Call<'_>,
        fetch_list: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Tensor>> {
        let Some(list) = fetch_list.filter(|list| !list.is_none()) else {
            let outputs = self.inner.outputs();
            if outputs.is_empty() {
                let text = "run: fetch_list is None, and the program has no outputs";
                return Err(Class::Value.error(call.py(), text));
            }
            let value = |name: &String| self.inner.value(name).map_err(|error| call.raise(&error));
            return outputs.iter().map(value).collect();
        };
        let items = match list.cast::<PyTensor>().is_ok() || list.is_instance_of::<PyString>() {
            true => vec![list.clone()],
            false => list.try_iter()?.collect::<PyResult<Vec<_>>>()?,
        };
        let fetch = |item: &Bound<'_, PyAny>| {
            if let Ok(tensor) = item.cast::<PyTensor>() {
                return Ok(tensor.get().inner().clone());
            }
            match item.cast::<PyString>() {
                Ok(name) => {
                    self.inner.value(&name.to_string_lossy()).map_err(|error| call.raise(&error))
                }
                Err(_) => {
                    let text = format!(
                        "run: fetch_list has a {}, expected a Tensor or a name",
                        type_name(item)
                    );
                    Err(Class::Type.error(call.py(), text))
                }
            }
        };
        items.iter().map(fetch).collect()
    }
}

#[pymethods]
impl PyProgram {
    #[new]
    fn new() -> Self {
        PyProgram { inner: Program::new() }
    }

    /// A symbolic tensor for an input. Each run receives its value under `name`.
    #[pyo3(signature = (name, shape, dtype=None))]
    fn data(
        &self,
        py: Python<'_>,
        name: &str,
        shape: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let call = Call::new(py, "data");
        let dtype = dtype::parse_optional("data", dtype.filter(|dtype| !dtype.is_none()))?;
        let size = |item: Bound<'_, PyAny>| -> PyResult<Option<usize>> {
            if item.is_none() {
                return Ok(None);
            }
            match item.extract::<i64>() {
                Ok(-1) => Ok(None),
                Ok(size) if size >= 0 => Ok(Some(size as usize)),
                _ => {
                    let text = format!(
                        "data: shape has {}, expected sizes of 0 or more, None or -1",
                        item.repr()?
                    );
                    Err(Class::Value.error(py, text))
                }
            }
        };
        let shape = shape.try_iter()?.map(|item| size(item?)).collect::<PyResult<Vec<_>>>()?;
        let dtype = dtype.unwrap_or(inlay::DType::F32);
        call.run(0, || self.inner.data(name, &shape, dtype)).map(PyTensor::new)
    }

    /// Run the program on the values of `feed`. Returns the values of `fetch_list` as a list.
    ///
    /// The program runs on the device of the tensors in `feed`. With `device`, the feeds are moved
    /// to that device first.
    #[pyo3(signature = (feed=None, fetch_list=None, donate=false, return_numpy=true, device=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        feed: Option<&Bound<'py, PyDict>>,
        fetch_list: Option<&Bound<'py, PyAny>>,
        donate: bool,
        return_numpy: bool,
        device: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut call = Call::new(py, "run");
        let device = device.map(|device| crate::device::parse("run", device)).transpose()?;
        let fetch = self.fetches(&call, fetch_list)?;
        let mut names: Vec<String> = Vec::new();
        let mut tensors: Vec<Tensor> = Vec::new();
        for (name, object) in feed.into_iter().flatten() {
            let name = name.extract::<String>()?;
            let dtype = self.inner.input_dtype(&name);
            let tensor = match dtype {
                Some(dtype) => call.values("feed", &object, dtype)?,
                None => call.array("feed", &object)?,
            };
            let tensor = match device {
                Some(device) => tensor.to(device).map_err(|error| call.raise(&error))?,
                None => tensor.into_owned(),
            };
            tensors.push(tensor);
            names.push(name);
        }
        let feed: Vec<(&str, &Tensor)> =
            names.iter().map(String::as_str).zip(tensors.iter()).collect();
        let fetch: Vec<&Tensor> = fetch.iter().collect();
        let size = tensors.iter().map(Tensor::numel).max().unwrap_or(0);
        let run = || match donate {
            true => self.inner.run_donated(&feed, &fetch),
            false => self.inner.run(&feed, &fetch),
        };
        // Results that depend on no feed are made on the current device.
        let results = call.run(size, || match device {
            Some(device) => inlay::with_device(device, run)?,
            None => run(),
        })?;
        let give = |tensor: Tensor| match return_numpy {
            true => Call::new(py, "run").give(tensor),
            false => Ok(Bound::new(py, PyTensor::new(tensor))?.into_any()),
        };
        PyList::new(py, results.into_iter().map(give).collect::<PyResult<Vec<_>>>()?)
    }

    /// The plan for fetching `fetch_list`.
    #[pyo3(signature = (fetch_list=None, donate=false))]
    fn plan(
        &self,
        py: Python<'_>,
        fetch_list: Option<&Bound<'_, PyAny>>,
        donate: bool,
    ) -> PyResult<PyPlan> {
        let call = Call::new(py, "plan");
        let fetch = self.fetches(&call, fetch_list)?;
        let fetch: Vec<&Tensor> = fetch.iter().collect();
        let inner = call.run(usize::MAX, || self.inner.plan(&fetch, donate))?;
        Ok(PyPlan { inner })
    }

    /// The plan as text: steps, in-place writes, avoided copies, peak memory.
    #[pyo3(signature = (fetch_list=None, donate=false))]
    fn explain(
        &self,
        py: Python<'_>,
        fetch_list: Option<&Bound<'_, PyAny>>,
        donate: bool,
    ) -> PyResult<String> {
        Ok(self.plan(py, fetch_list, donate)?.inner.to_string())
    }

    /// The program as an SVG image, in a string.
    fn to_svg(&self) -> String {
        self.inner.to_svg()
    }

    fn _repr_svg_(&self) -> String {
        self.inner.to_svg()
    }

    /// Give names to results. A program that was loaded from a file finds its results by name.
    fn set_outputs(&self, py: Python<'_>, outputs: &Bound<'_, PyDict>) -> PyResult<()> {
        let call = Call::new(py, "set_outputs");
        let mut named = Vec::new();
        for (name, tensor) in outputs {
            let tensor = tensor.cast::<PyTensor>().map_err(|_| {
                let text = format!("set_outputs: got a {}, expected a Tensor", type_name(&tensor));
                Class::Type.error(py, text)
            })?;
            named.push((name.extract::<String>()?, tensor.get().inner().clone()));
        }
        let named: Vec<(&str, &Tensor)> =
            named.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        call.run(0, || self.inner.set_outputs(&named))
    }

    /// The names of the inputs.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        self.inner.inputs()
    }

    /// The names of the outputs.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.inner.outputs()
    }

    /// Write the inputs and all nodes that the outputs need to a file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        Call::new(py, "save").run(usize::MAX, || self.inner.save(&path))
    }

    /// Read a program from a file. A damaged or malicious file raises an error.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<PyProgram> {
        let inner = Call::new(py, "load").run(usize::MAX, || Program::load(&path))?;
        Ok(PyProgram { inner })
    }

    /// A copy of the whole program. Symbolic tensors of this program don't belong to the copy.
    fn __copy__(&self, py: Python<'_>) -> PyResult<PyProgram> {
        let call = Call::new(py, "copy");
        let copy = || Program::from_bytes(&self.inner.to_whole_bytes()?);
        call.run(usize::MAX, copy).map(|inner| PyProgram { inner })
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<PyProgram> {
        self.__copy__(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let bytes = Call::new(py, "pickle").run(usize::MAX, || self.inner.to_whole_bytes())?;
        let rebuild = py.import("inlay._inlay")?.getattr("_rebuild_program")?;
        (rebuild, (PyBytes::new(py, &bytes),)).into_pyobject(py)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    // Without this, an empty program would be false, because its length is 0.
    fn __bool__(&self) -> bool {
        true
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.inner)
    }
}

/// Makes a program from the bytes that pickle has stored.
#[pyfunction]
#[pyo3(name = "_rebuild_program")]
fn rebuild(data: &Bound<'_, PyBytes>) -> PyResult<PyProgram> {
    let (call, bytes) = (Call::new(data.py(), "pickle"), data.as_bytes());
    let inner = call.run(usize::MAX, || Program::from_bytes(bytes))?;
    Ok(PyProgram { inner })
}

/// The steps with which a program computes one set of results.
#[pyclass(name = "Plan", module = "inlay.static", frozen)]
pub(crate) struct PyPlan {
    inner: Arc<Plan>,
}

#[pymethods]
impl PyPlan {
    /// The number of whole-tensor copies that in-place writes avoid.
    #[getter]
    fn copies_saved(&self) -> usize {
        self.inner.copies_saved()
    }

    /// The peak memory of a run in bytes, without feeds and constants. None if sizes are not known.
    #[getter]
    fn peak_memory(&self) -> Option<usize> {
        self.inner.peak_memory()
    }

    /// The names of the inputs that the plan needs, in the order of the program's inputs.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        self.inner.inputs().map(str::to_owned).collect()
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.inner)
    }
}

/// Adds the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    inlay::set_site(site);
    module.add_class::<PyProgram>()?;
    module.add_class::<PyPlan>()?;
    module.add_function(wrap_pyfunction!(rebuild, module)?)?;
    module.add_class::<traces::PyTraces>()?;
    module.add_class::<traces::PyTrace>()
}
