//! Hooks in Python, and the reference cycles that they form.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use inlay::{Error, Hook, Tensor};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::convert::Call;
use crate::error::type_name;
use crate::gil::is_any_detached;
use crate::tensor::PyTensor;

/// The number of hooks that exist. Without hooks, the garbage collector need not look at graphs.
static HOOKS: AtomicUsize = AtomicUsize::new(0);

/// A Python callable as a hook. It is `None` after the hook was removed.
struct PyHook(Mutex<Option<Py<PyAny>>>);

impl PyHook {
    fn new(callable: Py<PyAny>) -> Self {
        HOOKS.fetch_add(1, Ordering::Relaxed);
        PyHook(Mutex::new(Some(callable)))
    }

    /// Applies `use_it` to the callable. The lock must not be held while Python code runs.
    fn with<R>(&self, use_it: impl FnOnce(&mut Option<Py<PyAny>>) -> R) -> R {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for PyHook {
    fn drop(&mut self) {
        HOOKS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Hook for PyHook {
    fn call(&self, grad: &Tensor) -> inlay::Result<Option<Tensor>> {
        Python::attach(|py| {
            let callable = self.with(|callable| Some(callable.as_ref()?.clone_ref(py)));
            let Some(callable) = callable else { return Ok(None) };
            let given = Bound::new(py, PyTensor::new(grad.clone()));
            // The exception is the source of the error, and `raise` raises it again.
            let result = given.and_then(|given| callable.bind(py).call1((given,)));
            let result = result.map_err(Error::hook)?;
            if result.is_none() {
                return Ok(None);
            }
            match result.cast::<PyTensor>() {
                Ok(tensor) => Ok(Some(tensor.get().inner().clone())),
                Err(_) => {
                    let text = format!("it returned a {}, not a Tensor", type_name(&result));
                    Err(Error::Hook { text, source: None })
                }
            }
        })
    }
}

#[pymethods]
impl PyTensor {
    /// Call `hook` with the gradient of this tensor whenever ``backward`` computes it.
    ///
    /// If the hook returns a tensor, that replaces the gradient. If it raises an exception,
    /// ``backward`` raises that exception, and no ``grad`` changes. Returns a handle whose
    /// ``remove()`` removes the hook.
    fn register_hook(&self, hook: &Bound<'_, PyAny>) -> PyResult<HookHandle> {
        let call = Call::new(hook.py(), "register_hook");
        if !hook.is_callable() {
            return Err(call.expected("hook", hook, "a callable"));
        }
        let hook = Arc::new(PyHook::new(hook.clone().unbind()));
        let handle = HookHandle(Arc::downgrade(&hook));
        call.run(0, || self.inner().add_hook(hook))?;
        Ok(handle)
    }

    // A hook that refers to its tensor forms a cycle. Only the callables that this object alone
    // keeps alive are visited: each is then visited once, as the garbage collector requires.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // All passes of a collection must see the same references. They do while the GIL is held
        // and no thread works without it.
        if HOOKS.load(Ordering::Relaxed) == 0 || is_any_detached() {
            return Ok(());
        }
        let mut result = Ok(());
        self.inner().owned_hooks(|hook| {
            let hook: &dyn Any = &**hook;
            if let Some(hook) = hook.downcast_ref::<PyHook>()
                && let Ok(callable) = hook.0.try_lock()
                && result.is_ok()
            {
                result = visit.call(&*callable);
            }
        });
        result
    }

    fn __clear__(&self) {
        self.inner().drop_owned_hooks();
    }
}

/// The handle of a hook, with which it is removed. It does not keep the hook alive.
#[pyclass(module = "inlay", frozen)]
pub(crate) struct HookHandle(Weak<PyHook>);

#[pymethods]
impl HookHandle {
    /// Remove the hook. It is not called any more.
    fn remove(&self) {
        // Dropping the callable may run Python code, so it happens without the lock.
        let removed = self.0.upgrade().and_then(|hook| hook.with(Option::take));
        drop(removed);
    }
}
