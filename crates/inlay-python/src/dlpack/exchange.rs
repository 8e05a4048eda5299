//! Exchange of tensors through the table of C functions of another library, without calls of its
//! Python code.
#![expect(unsafe_code, reason = "the functions of a table take raw pointers")]

use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use inlay::interop::dlpack::{
    Copy, DLManagedTensorVersioned, DLPackExchangeAPI, DLTensor, Managed,
};
use inlay::{DType, Kind, Tensor};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};
use pyo3::{ffi, intern};

use super::storage::{Storage, Watch, too_small};
use super::{Purpose, Subject, adopt, capsule};
use crate::error::{Class, raise, type_name, wrap};

/// The table of a library, and what must be asked about its tensors before they are used.
pub(crate) struct Table {
    api: &'static DLPackExchangeAPI,
    gradient: Gradient,
    /// Whether a tensor may differ from its memory by a sign or a conjugation (PyTorch).
    is_lazy: bool,
    /// Whether there are tensors without strided memory, for which the functions of the table have
    /// undefined behavior (Paddle). PyTorch's functions return an error for them.
    is_mixed: bool,
    /// Whether a tensor may be given other memory while it is exported (PyTorch). Its storage, which
    /// is an object of its own, is then kept too.
    has_storage: bool,
    /// Whether all tensors may be written in place. The struct of [`Table::borrow`] can't say it.
    is_mutable: bool,
}

/// How tensors tell that they require a gradient.
#[derive(Clone, Copy)]
enum Gradient {
    /// They have none.
    Never,
    /// By `requires_grad`: PyTorch.
    Requires,
    /// By the opposite, `stop_gradient`: Paddle.
    Stops,
}

impl Table {
    /// The table over `api`, which `class` has as its own.
    pub(super) fn new(class: &Bound<'_, PyAny>, api: &'static DLPackExchangeAPI) -> Self {
        let has = |name| class.hasattr(name).unwrap_or(false);
        // Paddle has both attributes, and computes `requires_grad` in Python.
        let gradient = match (has("stop_gradient"), has("requires_grad")) {
            (true, _) => Gradient::Stops,
            (_, true) => Gradient::Requires,
            _ => Gradient::Never,
        };
        let module = class.getattr("__module__").and_then(|name| name.extract::<String>());
        let module = module.unwrap_or_default();
        let is_mutable = ["torch", "paddle"].contains(&module.split('.').next().unwrap_or(""));
        Table {
            api,
            gradient,
            is_lazy: has("is_neg"),
            is_mixed: has("is_dense"),
            has_storage: has("untyped_storage"),
            is_mutable,
        }
    }

    /// Whether this is the table over `api`.
    pub(super) fn is_over(&self, api: &DLPackExchangeAPI) -> bool {
        ptr::eq(self.api, api)
    }

    /// Whether a tensor of the library requires a gradient. The other methods don't ask.
    #[inline]
    pub(crate) fn requires_gradient(&self, object: &Bound<'_, PyAny>) -> bool {
        let py = object.py();
        let (name, yes) = match self.gradient {
            Gradient::Never => return false,
            Gradient::Requires => (intern!(py, "requires_grad"), true),
            Gradient::Stops => (intern!(py, "stop_gradient"), false),
        };
        object.getattr(name).is_ok_and(|found| found.is(PyBool::new(py, yes)))
    }

    /// Imports a tensor of the library. The result keeps the memory alive, also if the object is
    /// given other memory (`set_`, an assignment to `data`). It does not keep memory that PyTorch
    /// replaces inside of the storage (`resize_` to a larger size), so the storage is added to
    /// `watch`. A mode of PyTorch that refuses to show the storage makes this import as `__dlpack__`
    /// does, without it.
    ///
    /// A refusal of the library becomes an error that names the operation and the argument.
    pub(crate) fn import(
        &self,
        object: &Bound<'_, PyAny>,
        subject: Subject,
        purpose: Purpose,
        watch: &Watch,
    ) -> PyResult<Tensor> {
        let cause = match self.shared(object, purpose) {
            Ok((tensor, storage)) => {
                self.expect_resolved(object, subject, &tensor)?;
                match watch.admits(&tensor, storage) {
                    true => return Ok(tensor),
                    false => return Err(too_small(object, subject)),
                }
            }
            Err(cause) => cause,
        };
        let subject = subject.to_string();
        match object.get_type().hasattr(intern!(object.py(), "__dlpack__")) {
            // It asks more than the table does, and so has the better message.
            Ok(true) => capsule::import(object, &subject, purpose, watch),
            _ => Err(wrap(object.py(), &subject, cause)),
        }
    }

    /// Like [`Table::import`], but returns `None` for a tensor that is anything but plain elements in
    /// memory.
    pub(crate) fn import_plain(
        &self,
        object: &Bound<'_, PyAny>,
        purpose: Purpose,
        watch: &Watch,
    ) -> Option<Tensor> {
        let (tensor, storage) = self.shared(object, purpose).ok()?;
        let is_plain = self.is_resolved(object, tensor.dtype()) && watch.admits(&tensor, storage);
        is_plain.then_some(tensor)
    }

    /// Imports a tensor of the library together with its storage.
    fn shared(
        &self,
        object: &Bound<'_, PyAny>,
        purpose: Purpose,
    ) -> PyResult<(Tensor, Option<Storage>)> {
        let py = object.py();
        let function = match self.api.managed_tensor_from_py_object_no_sync {
            Some(function) if self.is_dense(object) => function,
            _ => return Err(PyTypeError::new_err("the tensor has no strided memory")),
        };
        let storage = match self.has_storage {
            true => Some(Storage::of(object).ok_or_else(hidden)?),
            false => None,
        };
        let mut managed = ptr::null_mut();
        // SAFETY: the table is that of the object's class, the object is live, the GIL is held, and
        // `managed` is a place for the result. The library gives up the struct that it returns, and
        // its deleter is called with the GIL held.
        let managed = unsafe {
            let status = function(object.as_ptr().cast(), &mut managed);
            let managed = NonNull::new(managed).filter(|_| status == 0);
            Managed::from_raw(managed.ok_or_else(|| raised(py))?)
        };
        if purpose == Purpose::Write && managed.is_copied() {
            return Err(PyBufferError::new_err("the library exports only a copy of the tensor"));
        }
        let keep = storage.as_ref().map(|storage| storage.object(py));
        Ok((adopt(py, managed, keep)?, storage))
    }

    /// Like [`Table::import`], but nothing is allocated, and the result keeps nothing alive. Returns
    /// `None` for a tensor that must be imported, because the library refuses it. This runs no Python
    /// code and keeps the GIL.
    ///
    /// # Safety
    /// The tensor has strided memory, and its elements are those in memory.
    ///
    /// The result and all that share its memory are not used once the object may be gone, the GIL was
    /// released or Python code ran, which may give the object other memory. A call that releases the
    /// GIL must import its arguments.
    #[inline]
    pub(crate) unsafe fn borrow(
        &self,
        object: &Bound<'_, PyAny>,
        purpose: Purpose,
    ) -> Option<Tensor> {
        let writable = purpose == Purpose::Write;
        let function = self.api.dltensor_from_py_object_no_sync?;
        if writable && !self.is_mutable {
            return None;
        }
        let mut view = MaybeUninit::<DLTensor>::uninit();
        // SAFETY: as in `shared`. A function that returns 0 has filled in the struct. Its elements
        // are valid until other code of the library runs, and the caller guarantees that the tensor
        // is not used after that.
        unsafe {
            match function(object.as_ptr().cast(), view.as_mut_ptr()) {
                0 => view.assume_init_ref().lend(writable).ok(),
                _ => {
                    drop(PyErr::take(object.py()));
                    None
                }
            }
        }
    }

    /// Whether the elements of a tensor are the negated ones of its memory. PyTorch releases the GIL
    /// for this question.
    #[inline]
    fn is_negated(&self, object: &Bound<'_, PyAny>) -> bool {
        self.is_lazy && says(object, intern!(object.py(), "is_neg"))
    }

    /// Whether the elements of a complex tensor are the conjugates of those in its memory. PyTorch
    /// releases the GIL for this question.
    fn is_conjugated(&self, object: &Bound<'_, PyAny>) -> bool {
        self.is_lazy && says(object, intern!(object.py(), "is_conj"))
    }

    /// Makes a tensor of the library over the memory of `tensor`, which should be a fresh one. The
    /// memory goes back to the pool when the library frees it, from any thread, without the GIL.
    /// Negative strides, which PyTorch and Paddle don't have, are copied.
    pub(crate) fn export<'py>(
        &self,
        py: Python<'py>,
        op: &'static str,
        tensor: Tensor,
    ) -> PyResult<Bound<'py, PyAny>> {
        let copy = match tensor.layout().strides().iter().any(|&stride| stride < 0) {
            true => Copy::Always,
            false => Copy::IfNeeded,
        };
        let managed = tensor.into_dlpack::<DLManagedTensorVersioned>(copy);
        let managed = managed.map_err(|error| raise(py, &error))?;
        let Some(function) = self.api.managed_tensor_to_py_object_no_sync else {
            return Err(Class::Buffer.error(py, format!("{op}: the library takes no tensors")));
        };
        let mut object = ptr::null_mut();
        // SAFETY: the function becomes the owner of the struct, whose deleter any thread may call,
        // and returns a new reference. The GIL is held.
        unsafe {
            let status = function(managed.into_raw().as_ptr(), &mut object);
            let object = Bound::from_owned_ptr_or_opt(py, object.cast::<ffi::PyObject>());
            // The library owns the struct also if it fails. If it leaks it, only memory is lost.
            object.filter(|_| status == 0).ok_or_else(|| wrap(py, op, raised(py)))
        }
    }

    /// Whether a tensor has strided memory.
    #[inline]
    fn is_dense(&self, object: &Bound<'_, PyAny>) -> bool {
        !self.is_mixed || says(object, intern!(object.py(), "is_dense"))
    }

    /// Whether the elements of a tensor are those in memory. Only a floating-point number can be
    /// negated when it is read, and only a complex one conjugated.
    #[inline]
    fn is_resolved(&self, object: &Bound<'_, PyAny>, dtype: DType) -> bool {
        match dtype.kind() {
            Kind::Bool | Kind::Integer => true,
            Kind::Float => !self.is_negated(object),
            Kind::Complex => !self.is_negated(object) && !self.is_conjugated(object),
        }
    }

    /// Fails for a tensor whose elements are not those in memory.
    #[inline]
    fn expect_resolved(
        &self,
        object: &Bound<'_, PyAny>,
        subject: Subject,
        tensor: &Tensor,
    ) -> PyResult<()> {
        if self.is_resolved(object, tensor.dtype()) {
            return Ok(());
        }
        if says(object, intern!(object.py(), "is_neg")) {
            return Err(unresolved(object, subject, Class::Type, "negated", "neg"));
        }
        let how = "conjugated (its conjugate bit is set)";
        Err(unresolved(object, subject, Class::Buffer, how, "conj"))
    }
}

/// The exception that a function of a table has set.
#[cold]
fn raised(py: Python<'_>) -> PyErr {
    let silent = || PyRuntimeError::new_err("the library reports an error without a message");
    PyErr::take(py).unwrap_or_else(silent)
}

/// Calls a method without arguments, and returns whether it returns `True`.
#[inline]
fn says(object: &Bound<'_, PyAny>, method: &Bound<'_, PyString>) -> bool {
    let answer = object.call_method0(method);
    answer.is_ok_and(|answer| answer.is(PyBool::new(object.py(), true)))
}

/// The cause of an import without the storage, which a mode does not show.
#[cold]
fn hidden() -> PyErr {
    PyTypeError::new_err("the tensor does not show its storage")
}

#[cold]
fn unresolved(
    object: &Bound<'_, PyAny>,
    subject: Subject,
    class: Class,
    how: &str,
    method: &str,
) -> PyErr {
    let (kind, arg) = (type_name(object), subject.arg);
    let text = format!(
        "{subject} is a {kind} that is {how} only when it is read: pass {arg}.resolve_{method}()"
    );
    class.error(object.py(), text)
}
