//! The short way of a call on tensors of PyTorch or Paddle: nothing watches the call, and the tensors
//! are plain elements in the memory of the CPU. Such a call takes the same path as one on NumPy
//! arrays, without Python code. All others go to the bridge.

use inlay::{DType, Kind, Tensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyTuple, PyType};
use smallvec::SmallVec;

use super::Foreign;
use super::builtin::{Attribute, Builtin, Method};
use super::libtorch::LibTorch;
use crate::convert::KEEP_GIL;
use crate::dlpack::{Purpose, Table, Watch};

/// What tells whether a call may take the short way.
pub(crate) struct Native {
    table: &'static Table,
    /// The classes of plain tensors and of parameters.
    classes: [Py<PyType>; 2],
    library: Library,
}

enum Library {
    Torch(Torch),
    Paddle(Paddle),
}

struct Torch {
    /// What tells about tensors without a reference to them. Older versions don't have all of it.
    functions: Option<Box<LibTorch>>,
    /// The number of active modes that see what the dispatcher calls.
    dispatch_modes: Builtin,
    /// Functions that must return 0 or `False`: the number of other modes, and whether a function
    /// is traced.
    watchers: [Builtin; 2],
    forward_ad: Py<PyDict>,
    is_grad_enabled: Builtin,
    is_neg: Method,
    is_conj: Method,
    requires_grad: Attribute,
    interpreter: Py<PyAny>,
    increment_version: Py<PyAny>,
}

struct Paddle {
    /// Its attribute `_dygraph_tracer_` is `None` while a static graph is built.
    global_var: Py<PyAny>,
    has_grad: Builtin,
    is_dense: Method,
    stop_gradient: Attribute,
}

static TORCH: PyOnceLock<Option<Native>> = PyOnceLock::new();
static PADDLE: PyOnceLock<Option<Native>> = PyOnceLock::new();

impl Native {
    /// The short way of a library, if its version has all that is needed.
    pub(crate) fn of(py: Python<'_>, library: Foreign) -> Option<&'static Native> {
        let make = |make: fn(Python<'_>) -> PyResult<Option<Native>>| {
            share_threads(py, library);
            make(py).ok().flatten()
        };
        let native = match library {
            Foreign::Torch => TORCH.get_or_init(py, || make(Native::torch)),
            Foreign::Paddle => PADDLE.get_or_init(py, || make(Native::paddle)),
            Foreign::Jax => return None,
        };
        native.as_ref()
    }

    fn torch(py: Python<'_>) -> PyResult<Option<Native>> {
        let torch = py.import("torch")?;
        let c = torch.getattr("_C")?;
        let tensor = torch.getattr("Tensor")?.cast_into::<PyType>()?;
        let Some(table) = Table::of_class(&tensor) else { return Ok(None) };
        let function = |name| c.getattr(name).map(|function| Builtin::new(&function));
        let Some(requires_grad) = Attribute::of(&tensor, "requires_grad")? else {
            return Ok(None);
        };
        let parameter = torch.getattr("nn")?.getattr("Parameter")?.cast_into::<PyType>()?;
        let forward_ad = py.import("torch.autograd.forward_ad")?.dict();
        if !forward_ad.contains("_current_level")? {
            return Ok(None);
        }
        let functions = LibTorch::load(&torch).ok().map(Box::new);
        let classes = [tensor.unbind(), parameter.unbind()];
        let library = Library::Torch(Torch {
            functions,
            dispatch_modes: function("_len_torch_dispatch_stack")?,
            watchers: [function("_len_torch_function_stack")?, function("_is_tracing")?],
            forward_ad: forward_ad.unbind(),
            is_grad_enabled: function("is_grad_enabled")?,
            is_neg: Method::of(&classes, py, "is_neg")?,
            is_conj: Method::of(&classes, py, "is_conj")?,
            requires_grad,
            interpreter: c.getattr("_functorch")?.getattr("peek_interpreter_stack")?.unbind(),
            increment_version: c.getattr("_increment_version")?.unbind(),
        });
        Ok(Some(Native { table, classes, library }))
    }

    fn paddle(py: Python<'_>) -> PyResult<Option<Native>> {
        let paddle = py.import("paddle")?;
        let tensor = paddle.getattr("Tensor")?.cast_into::<PyType>()?;
        let Some(table) = Table::of_class(&tensor) else { return Ok(None) };
        let base = paddle.getattr("base")?;
        let framework = base.getattr("framework")?;
        let parameter = framework.getattr("EagerParamBase")?.cast_into::<PyType>()?;
        let Some(stop_gradient) = Attribute::of(&tensor, "stop_gradient")? else {
            return Ok(None);
        };
        let classes = [tensor.unbind(), parameter.unbind()];
        let library = Library::Paddle(Paddle {
            global_var: framework.getattr("global_var")?.unbind(),
            has_grad: Builtin::new(&base.getattr("core")?.getattr("_has_grad")?),
            is_dense: Method::of(&classes, py, "is_dense")?,
            stop_gradient,
        });
        Ok(Some(Native { table, classes, library }))
    }

    /// The short way for a call on tensors of the library, unless something watches the call.
    /// `target` is the tensor that is written in place.
    pub(crate) fn suits(
        py: Python<'_>,
        library: Foreign,
        target: Option<&Bound<'_, PyAny>>,
    ) -> Option<&'static Native> {
        let native = Native::of(py, library)?;
        // An exception counts as a reason for the long way, which raises it again.
        let suits = match &native.library {
            Library::Torch(torch) => {
                torch.is_unwatched(py) && target.is_none_or(|target| torch.may_write(target))
            }
            Library::Paddle(paddle) => paddle.is_dynamic(py),
        };
        // A mode would see the question, so it comes last.
        let suits = suits && target.is_none_or(|target| !native.requires_gradient(target));
        suits.then_some(native)
    }

    /// Whether an object is of a class of the library itself. A class that is derived from it may
    /// change what a call does.
    #[inline]
    pub(crate) fn takes(&self, object: &Bound<'_, PyAny>) -> bool {
        let class = object.get_type_ptr().cast();
        self.classes.iter().any(|known| known.as_ptr() == class)
    }

    /// Whether the elements of a tensor are the negated ones of its memory. The question may release
    /// the GIL.
    #[inline]
    pub(crate) fn is_negated(&self, object: &Bound<'_, PyAny>) -> bool {
        match &self.library {
            Library::Torch(torch) => self.says(&torch.is_neg, object),
            Library::Paddle(_) => false,
        }
    }

    /// Whether the elements of a complex tensor are the conjugates of those in its memory. The
    /// question may release the GIL.
    pub(crate) fn is_conjugated(&self, object: &Bound<'_, PyAny>) -> bool {
        match &self.library {
            Library::Torch(torch) => self.says(&torch.is_conj, object),
            Library::Paddle(_) => false,
        }
    }

    /// Whether tensors can be borrowed. Otherwise all must be imported.
    pub(crate) fn borrows(&self, py: Python<'_>) -> bool {
        match &self.library {
            Library::Torch(torch) => torch.functions.as_ref().is_some_and(|all| all.may_borrow(py)),
            Library::Paddle(_) => true,
        }
    }

    /// Whether a method of a tensor of the library itself answers `True`.
    #[inline]
    #[expect(unsafe_code, reason = "the class of the object is checked here")]
    fn says(&self, method: &Method, object: &Bound<'_, PyAny>) -> bool {
        // SAFETY: the class is one of those that the method was made for.
        self.takes(object) && unsafe { method.says(object) }
    }

    /// Whether a tensor requires a gradient.
    #[inline]
    fn requires_gradient(&self, object: &Bound<'_, PyAny>) -> bool {
        match &self.library {
            Library::Torch(torch) => torch.requires_grad.is(object, true),
            Library::Paddle(paddle) => paddle.stop_gradient.is(object, false),
        }
    }

    /// Whether the library would record a call with this tensor for a gradient.
    #[inline]
    pub(crate) fn records(&self, object: &Bound<'_, PyAny>, dtype: DType) -> bool {
        if !dtype.is_differentiable() || !self.requires_gradient(object) {
            return false;
        }
        let py = object.py();
        match &self.library {
            Library::Torch(torch) => torch.is_recording(py),
            Library::Paddle(paddle) => paddle.is_recording(py),
        }
    }

    /// Whether a call may be recorded without the bridge: no transform of `torch.func` is active.
    pub(crate) fn may_record(&self, py: Python<'_>) -> bool {
        match &self.library {
            Library::Torch(torch) => torch.has_no_transform(py),
            Library::Paddle(_) => true,
        }
    }

    /// Whether gradients are neither recorded themselves nor watched.
    pub(crate) fn is_plain_backward(&self, py: Python<'_>) -> bool {
        match &self.library {
            Library::Torch(torch) => {
                !torch.is_recording(py) && torch.is_undispatched(py) && torch.has_no_duals(py)
            }
            Library::Paddle(paddle) => !paddle.is_recording(py),
        }
    }

    /// Returns tensors over the memory of objects, or `None` if one of them is anything but a tensor
    /// of the library with plain elements in memory. They are borrowed if all are small and the call
    /// is not `large` for another reason.
    ///
    /// # Safety
    /// As for [`Native::tensor`], unless the call is large.
    #[expect(unsafe_code, reason = "passes the duty of `tensor` on")]
    pub(crate) unsafe fn plain(
        &self,
        objects: &[Bound<'_, PyAny>],
        large: bool,
        watch: &Watch,
    ) -> Option<SmallVec<[Tensor; 4]>> {
        let first = objects.first()?;
        if !objects.iter().all(|object| self.takes(object)) {
            return None;
        }
        let large = large || !self.borrows(first.py());
        let read = |owning: bool| {
            // SAFETY: the caller guarantees it.
            let one = |object| unsafe { self.tensor(object, Purpose::Read, owning, watch) };
            objects.iter().map(one).collect::<Option<SmallVec<[Tensor; 4]>>>()
        };
        // Questions to a tensor may release the GIL, so they come before the first is borrowed. Only
        // a complex tensor can be conjugated, which is seen late.
        if objects.iter().any(|object| self.is_negated(object)) {
            return None;
        }
        let mut found = read(large)?;
        if found.iter().any(|tensor| tensor.dtype().kind() == Kind::Complex) {
            found.into_iter().for_each(Tensor::give_back);
            watch.clear();
            if objects.iter().any(|object| self.is_conjugated(object)) {
                return None;
            }
            found = read(large)?;
        }
        match !large && found.iter().any(|tensor| tensor.numel() > KEEP_GIL) {
            true => {
                found.into_iter().for_each(Tensor::give_back);
                read(true)
            }
            false => Some(found),
        }
    }

    /// Returns a tensor over the memory of an object, or `None` if it is anything but plain elements
    /// in memory. If `owning`, a storage that may be resized is added to `watch`.
    ///
    /// # Safety
    /// If not `owning`: this library [borrows](Native::borrows), and was asked whether the tensor is
    /// negated or conjugated. The result and all that share its memory are not used once the object
    /// may be gone, the GIL was released or Python code ran, which may give the object other memory.
    #[expect(unsafe_code, reason = "passes the duty of `borrow` on")]
    pub(crate) unsafe fn tensor(
        &self,
        object: &Bound<'_, PyAny>,
        purpose: Purpose,
        owning: bool,
        watch: &Watch,
    ) -> Option<Tensor> {
        let tensor = match &self.library {
            _ if owning => self.table.import_plain(object, purpose, watch),
            _ if !self.takes(object) => None,
            Library::Torch(torch) => {
                let functions = torch.functions.as_ref()?;
                // SAFETY: the class is one of torch's own. The caller guarantees the rest.
                unsafe { functions.borrow(object, purpose) }
            }
            Library::Paddle(paddle) => match self.says(&paddle.is_dense, object) {
                // SAFETY: the tensor has strided memory. The caller guarantees the rest.
                true => unsafe { self.table.borrow(object, purpose) },
                false => None,
            },
        };
        // Wrappers without memory of their own have no address.
        tensor.filter(|tensor| tensor.numel() == 0 || !tensor.data_ptr().is_null())
    }

    /// Returns a tensor of the library over the memory of a result.
    pub(crate) fn give<'py>(
        &self,
        py: Python<'py>,
        op: &'static str,
        tensor: Tensor,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.table.export(py, op, tensor)
    }

    /// Tells the library that a tensor was written.
    pub(crate) fn count_write(&self, target: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = target.py();
        match &self.library {
            Library::Torch(torch) => {
                let targets = PyTuple::new(py, [target])?;
                torch.increment_version.bind(py).call1((targets,)).map(drop)
            }
            Library::Paddle(_) => {
                target.call_method0(intern!(py, "_bump_inplace_version")).map(drop)
            }
        }
    }
}

/// Makes operations compute on the threads of a library. Without that they are only slower.
fn share_threads(py: Python<'_>, library: Foreign) {
    let bridge = py.import("inlay._bridge");
    let shared = bridge.and_then(|bridge| bridge.call_method1("share_threads", (library.name(),)));
    drop(shared);
}

/// Whether a function returns 0 or `False`.
fn is_idle(py: Python<'_>, watcher: &Builtin) -> bool {
    watcher.call(py).is_some_and(|answer| !answer.is_truthy().unwrap_or(true))
}

impl Torch {
    /// Whether no mode, transform or tracer is active.
    fn is_unwatched(&self, py: Python<'_>) -> bool {
        self.has_no_duals(py)
            && self.is_undispatched(py)
            && self.watchers.iter().all(|watcher| is_idle(py, watcher))
    }

    /// Whether no derivatives are computed in forward mode.
    fn has_no_duals(&self, py: Python<'_>) -> bool {
        let level = self.forward_ad.bind(py).get_item(intern!(py, "_current_level"));
        let level = level.ok().flatten().and_then(|level| level.extract::<i64>().ok());
        level == Some(-1)
    }

    /// Whether no mode sees what the dispatcher calls.
    fn is_undispatched(&self, py: Python<'_>) -> bool {
        is_idle(py, &self.dispatch_modes)
    }

    fn is_recording(&self, py: Python<'_>) -> bool {
        self.is_grad_enabled.call(py).is_some_and(|answer| answer.is(PyBool::new(py, true)))
    }

    /// Whether a tensor may be written without more checks. A tensor that was made in inference mode
    /// has no version, and a transform does not see a write to a captured tensor.
    fn may_write(&self, target: &Bound<'_, PyAny>) -> bool {
        let py = target.py();
        target.getattr(intern!(py, "_version")).is_ok() && self.has_no_transform(py)
    }

    fn has_no_transform(&self, py: Python<'_>) -> bool {
        self.interpreter.bind(py).call0().is_ok_and(|interpreter| interpreter.is_none())
    }
}

impl Paddle {
    fn is_dynamic(&self, py: Python<'_>) -> bool {
        let tracer = self.global_var.bind(py).getattr(intern!(py, "_dygraph_tracer_"));
        tracer.is_ok_and(|tracer| !tracer.is_none())
    }

    fn is_recording(&self, py: Python<'_>) -> bool {
        !self.has_grad.call(py).is_some_and(|answer| answer.is(PyBool::new(py, false)))
    }
}
