//! Arrays of other libraries as arguments, read through the protocols that they offer.

use inlay::Tensor;
use numpy::PyUntypedArray;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyMemoryView, PyString, PyTuple};

use super::Call;
use crate::dlpack::{self, Purpose, Subject, Table};
use crate::error::{Class, type_name};
use crate::numpy::{asarray, is_scalar};

/// How an object of another library gives access to its elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// `__dlpack__`: PyTorch, Paddle, JAX, CuPy. It comes first, because it tells the device.
    DLPack,
    /// Python's buffer protocol: `memoryview`, `array.array`, `bytearray`.
    Buffer,
    /// `__array__`: pandas, xarray. The array may be a copy.
    Array,
    /// `__array_interface__`: Pillow.
    Interface,
}

impl Protocol {
    /// The protocol of an object that is neither a `Tensor` nor an array of NumPy. Only attributes
    /// of its class count: an object that computes its attributes may have any of them.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> Option<Protocol> {
        if Table::of(object).is_some() {
            return Some(Protocol::DLPack);
        }
        // NumPy reads `bytes` as text, although it is a buffer. Its scalars are numbers.
        let is_text = object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>();
        if is_text || is_scalar(object) {
            return None;
        }
        let (py, class) = (object.py(), object.get_type());
        let has = |name| class.hasattr(name).unwrap_or(false);
        if has(intern!(py, "__dlpack__")) {
            Some(Protocol::DLPack)
        } else if is_buffer(object) {
            Some(Protocol::Buffer)
        } else if has(intern!(py, "__array__")) {
            Some(Protocol::Array)
        } else if has(intern!(py, "__array_interface__")) {
            Some(Protocol::Interface)
        } else {
            None
        }
    }
}

/// Whether an object has Python's buffer protocol. A buffer that can't be opened counts, too.
fn is_buffer(object: &Bound<'_, PyAny>) -> bool {
    match PyMemoryView::from(object) {
        Ok(_) => true,
        Err(error) => !error.is_instance_of::<PyTypeError>(object.py()),
    }
}

impl<'py> Call<'py> {
    /// Whether an object is an array of another library.
    pub(crate) fn is_foreign(object: &Bound<'py, PyAny>) -> bool {
        Protocol::of(object).is_some()
    }

    /// Converts an array of another library, in shared memory if its protocol permits.
    pub(super) fn foreign(
        &self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
        protocol: Protocol,
    ) -> PyResult<Tensor> {
        self.expect_plain(arg, object)?;
        let array = match protocol {
            Protocol::DLPack => {
                return dlpack::import(object, self.subject(arg), Purpose::Read, self.watch());
            }
            Protocol::Buffer => PyMemoryView::from(object).and_then(|memory| asarray(&memory)),
            Protocol::Array => from_array_method(object),
            Protocol::Interface => {
                self.expect_owned_data(arg, object)?;
                asarray(object)
            }
        };
        self.typed(arg, &array.map_err(|cause| self.wrap(arg, cause))?)
    }

    /// Converts an array of another library that is the target of an in-place operation, so its
    /// memory must be shared.
    pub(super) fn foreign_target(
        &self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
        protocol: Protocol,
    ) -> PyResult<Tensor> {
        self.expect_plain(arg, object)?;
        match protocol {
            Protocol::DLPack => {
                dlpack::import(object, self.subject(arg), Purpose::Write, self.watch())
            }
            Protocol::Buffer => {
                let array = PyMemoryView::from(object).and_then(|memory| asarray(&memory));
                self.shared(arg, &array.map_err(|cause| self.wrap(arg, cause))?)
            }
            Protocol::Array | Protocol::Interface => {
                let text = format!(
                    "{} is a {}, which may give a copy of its elements: write into a NumPy array \
                     or a Tensor in place, and assign the result",
                    self.subject(arg),
                    type_name(object)
                );
                Err(Class::Type.error(self.py, text))
            }
        }
    }

    /// Converts a tensor whose class has a table. The table checks all that [`Call::expect_plain`]
    /// does but the gradient.
    pub(super) fn through_table(
        &self,
        arg: &'static str,
        object: &Bound<'py, PyAny>,
        table: &Table,
        purpose: Purpose,
    ) -> PyResult<Tensor> {
        if table.requires_gradient(object) {
            return Err(self.records_gradient(arg, object));
        }
        table.import(object, self.subject(arg), purpose, self.watch())
    }

    /// Fails for a tensor whose own library records a gradient, which would end here in silence, and
    /// for one whose elements are not those in memory.
    fn expect_plain(&self, arg: &'static str, object: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = self.py;
        let is = |name, value| match object.getattr_opt(name) {
            Ok(Some(found)) => found.is(PyBool::new(py, value)),
            _ => false,
        };
        if is(intern!(py, "requires_grad"), true) || is(intern!(py, "stop_gradient"), false) {
            return Err(self.records_gradient(arg, object));
        }
        // PyTorch exports a lazily negated tensor without its sign.
        let negated = object.call_method0(intern!(py, "is_neg"));
        if negated.is_ok_and(|negated| negated.is(PyBool::new(py, true))) {
            let text = format!(
                "{} is a {} that is negated only when it is read: pass {arg}.resolve_neg()",
                self.subject(arg),
                type_name(object)
            );
            return Err(Class::Type.error(py, text));
        }
        Ok(())
    }

    /// Fails for an `__array_interface__` that holds an address. Unlike a buffer, nobody vouches
    /// for the address, and reading a wrong one would end the process.
    fn expect_owned_data(&self, arg: &'static str, object: &Bound<'py, PyAny>) -> PyResult<()> {
        let data = || {
            let interface = object.getattr(intern!(self.py, "__array_interface__"))?;
            interface.get_item(intern!(self.py, "data"))
        };
        let data = data().map_err(|cause| self.wrap(arg, cause))?;
        if data.is_instance_of::<PyTuple>() {
            let text = format!(
                "{} is a {}, whose __array_interface__ is an unchecked address: pass \
                 numpy.asarray({arg}) if it can be trusted",
                self.subject(arg),
                type_name(object)
            );
            return Err(Class::Type.error(self.py, text));
        }
        Ok(())
    }

    /// The error for a tensor whose own library records a gradient.
    #[cold]
    fn records_gradient(&self, arg: &'static str, object: &Bound<'py, PyAny>) -> PyErr {
        let text = format!(
            "{} is a {} that requires a gradient, which its library can't record here: pass \
             {arg}.detach()",
            self.subject(arg),
            type_name(object)
        );
        Class::Type.error(self.py, text)
    }

    /// The beginning of an error message: the operation and the argument.
    fn subject(&self, arg: &'static str) -> Subject {
        Subject { op: self.op, arg }
    }
}

/// Calls `__array__`. NumPy's own conversion would prefer `__array_interface__`.
fn from_array_method<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let array = object.call_method0(intern!(object.py(), "__array__"))?;
    array.cast_into::<PyUntypedArray>().map_err(|error| {
        let got = type_name(&error.into_inner());
        PyTypeError::new_err(format!("__array__ returned a {got}, expected an array"))
    })
}
