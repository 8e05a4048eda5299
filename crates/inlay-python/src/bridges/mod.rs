//! Tensors of PyTorch, Paddle and JAX: which library an object belongs to, and the calls that go to
//! its bridge, a Python module.

mod builtin;
mod libtorch;
mod native;

use std::cell::RefCell;

use inlay::Tensor;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use crate::dlpack::{self, Purpose, Subject, Table, Watch};
use crate::error::raise;
use crate::tensor::PyTensor;

pub(crate) use native::Native;

/// A library whose tensors are arguments and results of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Foreign {
    Torch,
    Paddle,
    Jax,
}

/// The number of classes whose library is remembered.
const KNOWN: usize = 64;

thread_local! {
    /// The library of the classes seen last. The classes are kept alive, so that an address stays
    /// that of its class.
    static CLASSES: RefCell<Vec<(Py<PyType>, Option<Foreign>)>> =
        const { RefCell::new(Vec::new()) };
}

impl Foreign {
    /// The library of an object, if it is a tensor of one of the three.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Foreign>> {
        let class = object.get_type_ptr().cast();
        let known = CLASSES.with_borrow(|classes| {
            classes.iter().find(|(other, _)| other.as_ptr() == class).map(|(_, foreign)| *foreign)
        });
        match known {
            Some(foreign) => Ok(foreign),
            None => Foreign::of_class(&object.get_type()),
        }
    }

    #[cold]
    fn of_class(class: &Bound<'_, PyType>) -> PyResult<Option<Foreign>> {
        let mut found = None;
        for base in class.mro().iter() {
            let base = base.cast_into::<PyType>()?;
            let (module, name) = (base.module()?, base.name()?);
            let (module, name) = (module.to_string_lossy(), name.to_string_lossy());
            let package = module.split('.').next().unwrap_or_default();
            found = match (package, &*name) {
                ("torch", "Tensor") => Some(Foreign::Torch),
                ("paddle", "Tensor" | "Variable" | "Value" | "OpResult") => Some(Foreign::Paddle),
                ("jax" | "jaxlib", "ArrayImpl" | "Array" | "Tracer") => Some(Foreign::Jax),
                _ => continue,
            };
            break;
        }
        CLASSES.with_borrow_mut(|classes| {
            if classes.len() >= KNOWN {
                classes.clear();
            }
            classes.push((class.clone().unbind(), found));
        });
        Ok(found)
    }

    /// The name of the library, and of its bridge in the package `inlay`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Foreign::Torch => "torch",
            Foreign::Paddle => "paddle",
            Foreign::Jax => "jax",
        }
    }

    /// Returns a tensor over the memory of an object of this library. Its gradient is not looked at. A
    /// storage that may be resized is added to `watch`.
    pub(crate) fn read(
        self,
        subject: Subject,
        object: &Bound<'_, PyAny>,
        watch: &Watch,
    ) -> PyResult<Tensor> {
        match Table::of(object) {
            Some(table) => table.import(object, subject, Purpose::Write, watch),
            // `__dlpack__` refuses a tensor that requires a gradient.
            None if self != Foreign::Jax => {
                let plain = object.call_method0(intern!(object.py(), "detach"))?;
                dlpack::import(&plain, subject, Purpose::Write, watch)
            }
            None => dlpack::import(object, subject, Purpose::Read, watch),
        }
    }

    /// Returns a tensor of this library over the memory of a result.
    pub(crate) fn give<'py>(
        self,
        py: Python<'py>,
        op: &'static str,
        tensor: Tensor,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A view of an argument would be unknown to the library, so it becomes a copy.
        let tensor = match tensor.is_foreign() {
            true => tensor.copy().map_err(|error| raise(py, &error))?,
            false => tensor,
        };
        if let Some(table) = self.table(py) {
            return table.export(py, op, tensor);
        }
        let module = match self {
            Foreign::Torch => "torch",
            Foreign::Paddle => "paddle.utils.dlpack",
            Foreign::Jax => "jax.dlpack",
        };
        let tensor = PyTensor::new(tensor);
        py.import(module)?.call_method1(intern!(py, "from_dlpack"), (tensor,))
    }

    /// The exchange table of the library, if it has one.
    pub(crate) fn table(self, py: Python<'_>) -> Option<&'static Table> {
        static TABLES: [PyOnceLock<Option<&'static Table>>; 3] = [const { PyOnceLock::new() }; 3];
        let (module, name) = match self {
            Foreign::Torch => ("torch", "Tensor"),
            Foreign::Paddle => ("paddle", "Tensor"),
            Foreign::Jax => ("jax", "Array"),
        };
        let find = || {
            let class = py.import(module).and_then(|module| module.getattr(name)).ok()?;
            Table::of_class(class.cast::<PyType>().ok()?)
        };
        *TABLES[self as usize].get_or_init(py, find)
    }

    /// The call that converts an argument to this library, for messages.
    pub(crate) fn conversion(self, arg: &str) -> String {
        match self {
            Foreign::Torch => format!("torch.from_dlpack({arg})"),
            Foreign::Paddle => format!("paddle.from_dlpack({arg})"),
            Foreign::Jax => format!("jax.numpy.from_dlpack({arg})"),
        }
    }

    /// Calls the function of the bridge that records a call for gradients, if it has one for plain
    /// tensors. It takes a `Function` and its tensors.
    pub(crate) fn record<'py>(
        self,
        py: Python<'py>,
        arguments: Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static RECORDS: [PyOnceLock<Py<PyAny>>; 3] = [const { PyOnceLock::new() }; 3];
        let record = RECORDS[self as usize].get_or_try_init(py, || {
            let module = py.import(format!("inlay.{}", self.name()))?;
            module.getattr(intern!(py, "record")).map(Bound::unbind)
        })?;
        record.bind(py).call1(arguments)
    }

    /// Calls the bridge of this library.
    pub(crate) fn call<'py>(
        self,
        name: &str,
        in_place: bool,
        objects: Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static CALLS: [PyOnceLock<Py<PyAny>>; 3] = [const { PyOnceLock::new() }; 3];
        let py = objects.py();
        let call = CALLS[self as usize].get_or_try_init(py, || {
            let module = py.import(format!("inlay.{}", self.name()))?;
            module.getattr(intern!(py, "call")).map(Bound::unbind)
        })?;
        call.bind(py).call1((name, in_place, objects))
    }
}

/// The name of the library of an object, or None: ``'torch'``, ``'paddle'`` or ``'jax'``.
#[pyfunction]
fn _library(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    Ok(Foreign::of(object)?.map(Foreign::name))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_library, module)?)
}
