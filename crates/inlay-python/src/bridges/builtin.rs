//! Calls of functions and attributes that another library implements in C, without the lookup by name
//! and the call protocol of Python. They take a quarter of the time of a tiny call otherwise.
#![expect(unsafe_code, reason = "calls C functions by their addresses")]

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyCFunction, PyTuple};

/// A function without arguments.
pub(super) struct Builtin {
    /// Keeps the function alive.
    object: Py<PyAny>,
    form: Form,
}

/// How the C function is called. The object that it belongs to is its first argument.
#[derive(Clone, Copy)]
enum Form {
    None(ffi::PyCFunction),
    Fast(ffi::PyCFunctionFastWithKeywords),
    Tuple(ffi::PyCFunctionWithKeywords),
    /// By Python, because the function is none of these.
    Python,
}

impl Builtin {
    pub(super) fn new(object: &Bound<'_, PyAny>) -> Self {
        let form = match object.is_exact_instance_of::<PyCFunction>() {
            true => form_of(object),
            false => Form::Python,
        };
        Builtin { object: object.clone().unbind(), form }
    }

    /// Calls a function. An exception counts as no answer.
    #[inline]
    pub(super) fn call<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let object = self.object.as_ptr();
        // SAFETY: `object` is a builtin function unless the form is `Python`. The object that it
        // belongs to may be null, as the function expects then.
        unsafe {
            let target = match self.form {
                Form::Python => return self.object.bind(py).call0().ok(),
                _ => ffi::PyCFunction_GetSelf(object),
            };
            self.call_for(py, target)
        }
    }

    /// # Safety
    /// `target` is what the C function takes as its first argument.
    #[inline]
    unsafe fn call_for<'py>(
        &self,
        py: Python<'py>,
        target: *mut ffi::PyObject,
    ) -> Option<Bound<'py, PyAny>> {
        // SAFETY: `form_of` has read the flags that tell the form. The GIL is held, as `py` proves.
        // The result is a new reference, or null with an exception.
        let result = unsafe {
            let result = match self.form {
                Form::None(function) => function(target, ptr::null_mut()),
                Form::Fast(function) => function(target, ptr::null(), 0, ptr::null_mut()),
                Form::Tuple(function) => {
                    function(target, PyTuple::empty(py).as_ptr(), ptr::null_mut())
                }
                Form::Python => return None,
            };
            Bound::from_owned_ptr_or_opt(py, result)
        };
        if result.is_none() {
            drop(PyErr::take(py));
        }
        result
    }
}

/// The form of a builtin function.
fn form_of(object: &Bound<'_, PyAny>) -> Form {
    const FAST: i32 = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
    const TUPLE: i32 = ffi::METH_VARARGS | ffi::METH_KEYWORDS;
    // SAFETY: the object is a builtin function. A function with one of these flags has the type that
    // the C API gives for the flag.
    unsafe {
        let flags = ffi::PyCFunction_GetFlags(object.as_ptr());
        match (flags, ffi::PyCFunction_GetFunction(object.as_ptr())) {
            (ffi::METH_NOARGS, Some(function)) => Form::None(function),
            (FAST, Some(function)) => Form::Fast(std::mem::transmute::<
                ffi::PyCFunction,
                ffi::PyCFunctionFastWithKeywords,
            >(function)),
            (TUPLE, Some(function)) => Form::Tuple(std::mem::transmute::<
                ffi::PyCFunction,
                ffi::PyCFunctionWithKeywords,
            >(function)),
            _ => Form::Python,
        }
    }
}

/// A method without arguments that answers `True` or `False`.
pub(super) struct Method {
    name: &'static str,
    /// The method of the first object that was asked.
    first: PyOnceLock<Builtin>,
}

impl Method {
    pub(super) const fn new(name: &'static str) -> Self {
        Method { name, first: PyOnceLock::new() }
    }

    /// Whether the answer is `True`. An exception counts as another answer.
    ///
    /// # Safety
    /// The classes of all objects that are asked have the same implementation of the method.
    #[inline]
    pub(super) unsafe fn says(&self, object: &Bound<'_, PyAny>) -> bool {
        let py = object.py();
        let method = || object.getattr(self.name).map(|method| Builtin::new(&method));
        let answer = match self.first.get_or_try_init(py, method) {
            Ok(Builtin { form: Form::Python, .. }) => object.call_method0(self.name).ok(),
            // SAFETY: the caller guarantees that the function takes this object.
            Ok(method) => unsafe { method.call_for(py, object.as_ptr()) },
            Err(_) => None,
        };
        answer.is_some_and(|answer| answer.is(PyBool::new(py, true)))
    }
}

/// An attribute that the class computes.
pub(super) struct Attribute {
    descriptor: Py<PyAny>,
    get: ffi::descrgetfunc,
}

impl Attribute {
    /// The attribute of a class, if the class computes it.
    pub(super) fn of(class: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Self>> {
        let descriptor = class.getattr(name)?;
        // SAFETY: the slot of a class is null or a function of the type that its name tells.
        let get = unsafe {
            let slot = ffi::PyType_GetSlot(descriptor.get_type_ptr(), ffi::Py_tp_descr_get);
            std::mem::transmute::<*mut std::ffi::c_void, Option<ffi::descrgetfunc>>(slot)
        };
        Ok(get.map(|get| Attribute { descriptor: descriptor.unbind(), get }))
    }

    /// Whether the attribute of an object is a certain one of `True` and `False`. An exception counts
    /// as another value.
    #[inline]
    pub(super) fn is(&self, object: &Bound<'_, PyAny>, expected: bool) -> bool {
        let py = object.py();
        // SAFETY: the descriptor checks the class of the object. The GIL is held. The result is a new
        // reference, or null with an exception.
        let value = unsafe {
            let class = object.get_type_ptr().cast();
            let value = (self.get)(self.descriptor.as_ptr(), object.as_ptr(), class);
            Bound::from_owned_ptr_or_opt(py, value)
        };
        match value {
            Some(value) => value.is(PyBool::new(py, expected)),
            None => {
                drop(PyErr::take(py));
                false
            }
        }
    }
}
