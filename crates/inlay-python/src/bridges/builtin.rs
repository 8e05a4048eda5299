//! Calls of functions and attributes that another library implements in C, without the lookup by name
//! and the call protocol of Python, which would take a quarter of the time of a tiny call.
#![expect(unsafe_code, reason = "calls C functions by their addresses")]

use std::mem::transmute;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyCFunction, PyTuple, PyType};

type Fast = ffi::PyCFunctionFastWithKeywords;
type Tuple = ffi::PyCFunctionWithKeywords;

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
    Fast(Fast),
    Tuple(Tuple),
    /// By Python, because the function is none of these.
    Python,
}

impl Builtin {
    pub(super) fn new(object: &Bound<'_, PyAny>) -> Self {
        Builtin { object: object.clone().unbind(), form: Form::of(object) }
    }

    /// Calls the function. An exception counts as no answer.
    #[inline]
    pub(super) fn call<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self.form {
            Form::Python => self.object.bind(py).call0().ok(),
            // SAFETY: the object is a builtin function, since it has a form. What it belongs to may
            // be null, as the function then expects.
            form => unsafe { form.call(py, ffi::PyCFunction_GetSelf(self.object.as_ptr())) },
        }
    }
}

impl Form {
    /// The form of a builtin function or bound method.
    fn of(object: &Bound<'_, PyAny>) -> Self {
        const FAST: i32 = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
        const TUPLE: i32 = ffi::METH_VARARGS | ffi::METH_KEYWORDS;
        if !object.is_exact_instance_of::<PyCFunction>() {
            return Form::Python;
        }
        // SAFETY: the object is a builtin function. A function with one of these flags has the type
        // that the C API gives for the flag.
        unsafe {
            let flags = ffi::PyCFunction_GetFlags(object.as_ptr());
            let Some(function) = ffi::PyCFunction_GetFunction(object.as_ptr()) else {
                return Form::Python;
            };
            match flags {
                ffi::METH_NOARGS => Form::None(function),
                FAST => Form::Fast(transmute::<ffi::PyCFunction, Fast>(function)),
                TUPLE => Form::Tuple(transmute::<ffi::PyCFunction, Tuple>(function)),
                _ => Form::Python,
            }
        }
    }

    /// Calls the function. An exception counts as no answer, and so does [`Form::Python`].
    ///
    /// # Safety
    /// `target` is what the C function takes as its first argument.
    #[inline]
    unsafe fn call<'py>(
        self,
        py: Python<'py>,
        target: *mut ffi::PyObject,
    ) -> Option<Bound<'py, PyAny>> {
        // SAFETY: `of` has read the flags that tell the type of the function. The GIL is held, as
        // `py` proves. The result is a new reference, or null with an exception.
        let result = unsafe {
            let result = match self {
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

/// A method without arguments that answers `True` or `False`.
pub(super) struct Method {
    name: &'static str,
    /// The method in the classes, if all of them have the same one and it is a function in C.
    descriptor: Option<Py<PyAny>>,
    /// Read when the first object is asked, because only a bound method tells it.
    form: PyOnceLock<Form>,
}

impl Method {
    /// The method of some classes. What an object has under the same name is not looked at.
    pub(super) fn of(classes: &[Py<PyType>], py: Python<'_>, name: &'static str) -> PyResult<Self> {
        let mut found = classes.iter().map(|class| class.bind(py).getattr(name));
        let first = found.next().transpose()?;
        let same = found.all(|other| {
            other.is_ok_and(|other| Some(other.as_ptr()) == first.as_ref().map(Bound::as_ptr))
        });
        let kind = &raw mut ffi::PyMethodDescr_Type;
        let descriptor = first.filter(|first| same && first.get_type_ptr() == kind);
        let descriptor = descriptor.map(Bound::unbind);
        Ok(Method { name, descriptor, form: PyOnceLock::new() })
    }

    /// Whether the answer is `True`. An exception counts as another answer.
    ///
    /// # Safety
    /// The class of the object is one of those that the method was made for.
    #[inline]
    pub(super) unsafe fn says(&self, object: &Bound<'_, PyAny>) -> bool {
        let py = object.py();
        let form = self.form.get_or_init(py, || self.form_for(object));
        let answer = match form {
            Form::Python => object.call_method0(self.name).ok(),
            // SAFETY: the function is that of a method of the object's class.
            form => unsafe { form.call(py, object.as_ptr()) },
        };
        answer.is_some_and(|answer| answer.is(PyBool::new(py, true)))
    }

    #[cold]
    fn form_for(&self, object: &Bound<'_, PyAny>) -> Form {
        let bound = self.descriptor.as_ref().and_then(|descriptor| {
            let descriptor = descriptor.bind(object.py());
            descriptor.call_method1("__get__", (object, object.get_type())).ok()
        });
        bound.map_or(Form::Python, |method| Form::of(&method))
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
            transmute::<*mut std::ffi::c_void, Option<ffi::descrgetfunc>>(slot)
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
