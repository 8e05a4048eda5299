//! Conversion of errors to the exceptions of `inlay.errors`.

use std::io;
use std::path::Path;

use inlay::{Error, ErrorKind};
use pyo3::exceptions::{
    PyBufferError, PyException, PyMemoryError, PyOSError, PyOverflowError, PyRuntimeError,
    PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The classes of `inlay.errors`. Each but the last is named after the built-in exception that it is
/// derived from.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    Type,
    Value,
    Index,
    Runtime,
    Memory,
    Buffer,
    Replaced,
}

/// The Python classes, in the order of [`Class`].
static CLASSES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

impl Class {
    const NAMES: [&'static str; 7] = [
        "InlayTypeError",
        "InlayValueError",
        "InlayIndexError",
        "InlayRuntimeError",
        "InlayMemoryError",
        "InlayBufferError",
        "InlayReplacedError",
    ];

    fn object<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
        let classes = CLASSES.get_or_try_init(py, || {
            let module = py.import("inlay.errors")?;
            let class = |name| Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind());
            Class::NAMES.into_iter().map(class).collect::<PyResult<_>>()
        })?;
        Ok(classes[self as usize].bind(py).clone())
    }

    /// Makes an exception of this class.
    pub(crate) fn error(self, py: Python<'_>, text: impl Into<String>) -> PyErr {
        match self.object(py) {
            Ok(class) => PyErr::from_type(class, (text.into(),)),
            Err(error) => error,
        }
    }
}

/// Converts an error of the library to a Python exception.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    if let Some(retry) = crate::graph::sizes_needed(error) {
        return retry;
    }
    match error.root() {
        Error::Hook { source: Some(cause), .. } => {
            if let Some(raised) = cause.downcast_ref::<PyErr>() {
                return raised.clone_ref(py);
            }
        }
        Error::Io { path, source, .. } => return os_error(py, path, source),
        _ => {}
    }
    let class = match error.kind() {
        ErrorKind::Type => Class::Type,
        ErrorKind::Value => Class::Value,
        ErrorKind::Index => Class::Index,
        ErrorKind::Memory => Class::Memory,
        _ => Class::Runtime,
    };
    class.error(py, error.to_string())
}

/// Returns the `OSError` that `open` would raise, such as a `FileNotFoundError`.
fn os_error(py: Python<'_>, path: &Path, error: &io::Error) -> PyErr {
    let make = || {
        let class = py.get_type::<PyOSError>();
        match error.raw_os_error() {
            // Python chooses the subclass by the code.
            Some(code) => {
                let text = py.import("os")?.call_method1("strerror", (code,))?;
                class.call1((code, text, path.as_os_str()))
            }
            None => class.call1((format!("{}: {error}", path.display()),)),
        }
    };
    make().map_or_else(|failed| failed, PyErr::from_value)
}

/// Converts an exception that other Python code raised while `what` was read to an `InlayError`.
///
/// The original exception becomes its cause. An `InlayError`, a `KeyboardInterrupt` and a
/// `MemoryError` are returned unchanged.
pub(crate) fn wrap(py: Python<'_>, what: &str, cause: PyErr) -> PyErr {
    let foreign = cause.is_instance_of::<PyException>(py)
        && !cause.is_instance_of::<PyMemoryError>(py)
        && !is_ours(py, &cause);
    if !foreign {
        return cause;
    }
    let class = if cause.is_instance_of::<PyValueError>(py)
        || cause.is_instance_of::<PyOverflowError>(py)
    {
        Class::Value
    } else if cause.is_instance_of::<PyBufferError>(py) {
        Class::Buffer
    } else if cause.is_instance_of::<PyRuntimeError>(py) {
        Class::Runtime
    } else {
        Class::Type
    };
    let error = class.error(py, format!("{what}: {}", text_of(py, &cause)));
    error.set_cause(py, Some(cause));
    error
}

fn is_ours(py: Python<'_>, error: &PyErr) -> bool {
    let base = || py.import("inlay.errors")?.getattr("InlayError");
    base().is_ok_and(|base| error.matches(py, base).unwrap_or(false))
}

/// The message of an exception. If it is empty or `__str__` fails, the name of the class.
fn text_of(py: Python<'_>, error: &PyErr) -> String {
    match error.value(py).str() {
        Ok(text) if !text.to_string_lossy().is_empty() => text.to_string_lossy().into_owned(),
        _ => type_name(error.value(py).as_any()),
    }
}

/// An object of the wrong type, as messages name it: `None`, or `a` and its type.
pub(crate) fn described(object: &Bound<'_, PyAny>) -> String {
    match object.is_none() {
        true => "None".into(),
        false => format!("a {}", type_name(object)),
    }
}

/// The qualified name of an object's type for messages: `int`, `torch.Tensor`.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    let class = object.get_type();
    match class.fully_qualified_name() {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => "object".to_owned(),
    }
}
