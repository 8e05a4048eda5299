//! Conversion of arguments to tensors and of results to Python objects. Each call of an operation
//! has a [`Call`].

mod arrays;
mod list;
mod numbers;
mod protocols;
mod refuse;
mod stack;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use inlay::{Device, Error, Tensor};
use pyo3::prelude::*;

use crate::dlpack::Watch;
use crate::error::{Class, raise};
use crate::gil::detached;
use crate::numpy::{as_array, lend, owned, share, view};
use crate::tensor::PyTensor;

/// The largest number of elements for which an operation keeps the GIL. Releasing and reacquiring
/// the GIL takes longer than such an operation, and another thread may hold it for milliseconds.
pub(crate) const KEEP_GIL: usize = 16384;

/// The arguments and the result of one call of an operation.
///
/// The result is a `Tensor` if one of the arguments is one, otherwise a NumPy array.
pub(crate) struct Call<'py> {
    py: Python<'py>,
    op: &'static str,
    any_tensor: bool,
    /// Whether an argument is on a GPU. Such a call may wait for the GPU, so it releases the GIL.
    on_gpu: bool,
    /// The user's name for the nodes that the call adds to a program.
    label: Option<String>,
    /// Memory of arguments that other code can replace.
    watch: Watch,
}

/// An argument as a tensor. The tensor of a `Tensor` object is borrowed, because cloning it changes
/// a reference count, which takes 6 ns.
pub(crate) type Arg<'a> = Cow<'a, Tensor>;

impl<'py> Call<'py> {
    /// Begins a call of the operation `op`. Error messages start with this name.
    pub(crate) fn new(py: Python<'py>, op: &'static str) -> Self {
        Call { py, op, any_tensor: false, on_gpu: false, label: None, watch: Watch::default() }
    }

    /// The token that proves that the GIL is held.
    pub(crate) fn py(&self) -> Python<'py> {
        self.py
    }

    /// The name of the operation.
    pub(crate) fn op(&self) -> &'static str {
        self.op
    }

    /// What the imports of arguments add their memory to.
    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Sets the name of the nodes that the call adds to a program.
    pub(crate) fn set_label(&mut self, label: String) {
        self.label = Some(label);
    }

    /// The tensor of a `Tensor` object.
    #[inline]
    pub(crate) fn own<'a>(&mut self, object: &'a Bound<'py, PyAny>) -> Option<&'a Tensor> {
        // The class has no subclasses. A failed cast would make an error, which takes 10 ns.
        if !object.is_exact_instance_of::<PyTensor>() {
            return None;
        }
        let tensor = object.cast_exact::<PyTensor>().ok()?.get().inner();
        self.saw(tensor);
        Some(tensor)
    }

    /// The tensor over the memory of a NumPy array, unless that is of a subclass or can't be shared.
    #[inline]
    pub(crate) fn plain_array(&self, object: &Bound<'py, PyAny>) -> Option<Tensor> {
        share(as_array(object)?).ok().map(Tensor::plain)
    }

    /// Like [`Call::plain_array`], but the tensor does not keep the array alive.
    ///
    /// # Safety
    /// The array and its memory live until the tensor and all that share its memory are dropped or
    /// given back.
    #[inline]
    #[expect(unsafe_code, reason = "passes the duty of `lend` on")]
    pub(crate) unsafe fn lent_array(&self, object: &Bound<'py, PyAny>) -> Option<Tensor> {
        // SAFETY: the caller's promise.
        unsafe { lend(as_array(object)?) }.ok().map(Tensor::plain)
    }

    /// Whether an argument was a `Tensor`.
    pub(crate) fn has_tensor(&self) -> bool {
        self.any_tensor
    }

    /// Runs an operation on `size` elements. If it is large or on a GPU, the GIL is released. Fails if
    /// the memory of an argument was replaced meanwhile. A panic becomes a Python exception.
    pub(crate) fn run<T: Send>(
        &self,
        size: usize,
        work: impl FnOnce() -> inlay::Result<T> + Send,
    ) -> PyResult<T> {
        let label = self.label.as_deref();
        let work = || {
            catch_unwind(AssertUnwindSafe(|| match label {
                Some(label) => inlay::named(label, work),
                None => work(),
            }))
        };
        let waits = size > KEEP_GIL || self.on_gpu;
        self.watch.before(self.py, self.op)?;
        let result = if waits { detached(self.py, work) } else { work() };
        if waits {
            // This comes before an error of the operation, which may be due to what was read.
            self.watch.after(self.py, self.op)?;
        }
        match result {
            Ok(result) => result.map_err(|error| self.raise(&error)),
            Err(_) => {
                let text = format!("{}: internal error, please report it", self.op);
                Err(Class::Runtime.error(self.py, text))
            }
        }
    }

    /// Converts the result to a `Tensor` if an argument was one, otherwise to an array.
    pub(crate) fn give(self, tensor: Tensor) -> PyResult<Bound<'py, PyAny>> {
        let tensor = match tensor.is_lent() {
            true => tensor.copy().map_err(|error| self.raise(&error))?,
            false => tensor,
        };
        // NumPy arrays are always on the CPU.
        let tensor = match self.any_tensor || tensor.device() == Device::Cpu {
            true => tensor,
            false => tensor.cpu().map_err(|error| self.raise(&error))?,
        };
        if !self.any_tensor
            && let Some(array) = owned(self.py, &tensor)?
        {
            return Ok(array.into_any());
        }
        let tensor = Bound::new(self.py, PyTensor::new(tensor))?;
        if self.any_tensor { Ok(tensor.into_any()) } else { Ok(view(&tensor)?.into_any()) }
    }

    /// Converts an error of the library to an exception.
    pub(crate) fn raise(&self, error: &Error) -> PyErr {
        raise(self.py, error)
    }

    /// Makes the result a `Tensor`, whatever the arguments are.
    pub(crate) fn make_tensor(&mut self) {
        self.any_tensor = true;
    }

    /// Records that an argument is a tensor.
    #[inline]
    pub(crate) fn saw(&mut self, tensor: &Tensor) {
        self.any_tensor = true;
        self.on_gpu |= tensor.device() == Device::Gpu;
    }
}
