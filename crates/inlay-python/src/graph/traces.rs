//! The classes that implement `inlay.jit`. They trace a function and run its traces.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use inlay::{Error, Kinds, Sizes, Tensor, Trace, Traces, Written};
use numpy::PyUntypedArray;
use pyo3::create_exception;
use pyo3::exceptions::{PyBaseException, PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyNotImplemented};

use crate::convert::{Arg, Call};
use crate::error::Class;
use crate::tensor::PyTensor;

// The exception that ends a trace with unknown sizes. It is a `BaseException`, so a traced function
// that handles `Exception` does not catch it.
create_exception!(inlay._inlay, _SizesNeeded, PyBaseException);

thread_local! {
    /// Whether a function is being traced on this thread.
    static TRACING: Cell<bool> = const { Cell::new(false) };
}

/// Fails if a traced function asks for a shape with an unknown size. The function is then traced
/// again with known sizes.
pub(crate) fn expect_sizes(shape: &[usize]) -> PyResult<()> {
    if TRACING.get() && shape.contains(&Tensor::UNKNOWN) {
        return Err(_SizesNeeded::new_err("a traced function asks for a size"));
    }
    Ok(())
}

/// If a function is being traced and the error says that a size must be known, returns the
/// exception that ends the trace.
pub(crate) fn sizes_needed(error: &Error) -> Option<PyErr> {
    let retry = TRACING.get() && error.is_open_size();
    retry.then(|| _SizesNeeded::new_err(error.to_string()))
}

/// Runs `work` with [`TRACING`] set, and restores the old value afterwards, also after a panic.
fn while_tracing<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            TRACING.set(self.0);
        }
    }
    let _restore = Restore(TRACING.replace(true));
    work()
}

/// The key of a trace. Calls with equal keys share a trace.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kinds: Kinds,
    /// `None` if all arguments are tensors and arrays, given by position.
    constants: Option<Arc<Constants>>,
}

/// A Python object that describes which arguments are constants, and their values. Python code
/// builds it.
struct Constants {
    object: Py<PyAny>,
    hash: isize,
}

impl Hash for Constants {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl PartialEq for Constants {
    fn eq(&self, other: &Self) -> bool {
        // If the comparison fails, the constants count as different.
        let equal = |py: Python<'_>| self.object.bind(py).eq(&other.object).unwrap_or(false);
        self.hash == other.hash && Python::attach(equal)
    }
}

impl Eq for Constants {}

impl Key {
    fn new(args: &[Arg<'_>], constants: Option<&Bound<'_, PyAny>>) -> PyResult<Key> {
        let kinds = args.iter().map(|arg| (arg.dtype(), arg.rank())).collect();
        let constants = constants.filter(|constants| !constants.is_none()).map(|object| {
            let py = object.py();
            let hash =
                object.hash().map_err(|error| match error.is_instance_of::<PyTypeError>(py) {
                    true => {
                        Class::Type.error(py, "jit: a constant among the arguments can't be hashed")
                    }
                    false => error,
                })?;
            PyResult::Ok(Arc::new(Constants { object: object.clone().unbind(), hash }))
        });
        Ok(Key { kinds, constants: constants.transpose()? })
    }
}

/// Returns the shapes of the arguments.
fn sizes(args: &[Arg<'_>]) -> Sizes {
    args.iter().map(|arg| arg.shape().to_vec()).collect()
}

/// What a call of the function returned: the tensors of its result, and the callable that builds
/// the result from a list of their values. The callable is `None` if the result is a single tensor.
type Returned<'py> = (Vec<Bound<'py, PyTensor>>, Option<Py<PyAny>>);

/// Calls the function with tensors in place of the arguments that are tensors and arrays.
fn returned(
    function: &Bound<'_, PyAny>,
    args: Vec<Tensor>,
) -> PyResult<(Vec<Tensor>, Option<Py<PyAny>>)> {
    let args: Vec<PyTensor> = args.into_iter().map(PyTensor::new).collect();
    let (results, rebuild): Returned<'_> = function.call1((args,))?.extract()?;
    Ok((results.iter().map(|result| result.get().inner().clone()).collect(), rebuild))
}

/// Builds the function's result from values of its tensors.
fn rebuilt<'py>(
    py: Python<'py>,
    mut results: Vec<Bound<'py, PyAny>>,
    rebuild: Option<&Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match rebuild {
        Some(rebuild) => rebuild.bind(py).call1((PyList::new(py, results)?,)),
        None => Ok(results.remove(0)),
    }
}

/// A trace, and the callable of [`Returned`].
struct Traced {
    trace: Trace,
    rebuild: Option<Py<PyAny>>,
}

impl Traced {
    fn run<'py>(
        &self,
        call: Call<'py>,
        args: &[Arg<'_>],
        tensors: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = call.py();
        let args: Vec<&Tensor> = args.iter().map(|arg| &**arg).collect();
        let size = args.iter().map(|tensor| tensor.numel()).max().unwrap_or(0);
        let mut results = call.run(size, || self.trace.call(&args))?;
        let give = |tensor: Tensor| match tensors {
            true => Ok(Bound::new(py, PyTensor::new(tensor))?.into_any()),
            false => Call::new(py, "jit").give(tensor),
        };
        // A single result needs no list.
        let Some(rebuild) = &self.rebuild else { return give(results.remove(0)) };
        let results = results.into_iter().map(give).collect::<PyResult<_>>()?;
        rebuilt(py, results, Some(rebuild))
    }
}

/// Converts arguments that are tensors and arrays, and returns whether one of them is a `Tensor`.
///
/// Returns `None` if an argument is a constant, if a gradient is recorded for one, or if one is
/// symbolic because an outer function is being traced.
fn plain_args<'a, 'py>(
    call: &mut Call<'py>,
    args: &'a [Bound<'py, PyAny>],
) -> PyResult<Option<(Vec<Arg<'a>>, bool)>> {
    let (mut found, mut tensors) = (Vec::with_capacity(args.len()), false);
    for arg in args {
        if let Ok(tensor) = arg.cast_exact::<PyTensor>() {
            let tensor = tensor.get().inner();
            let recorded = !tensor.stop_gradient() && inlay::is_grad_enabled();
            if recorded || tensor.is_symbolic() {
                return Ok(None);
            }
            tensors = true;
            call.saw(tensor);
            found.push(Arg::Borrowed(tensor));
        } else if arg.cast::<PyUntypedArray>().is_ok() {
            found.push(call.array("argument", arg)?);
        } else {
            return Ok(None);
        }
    }
    Ok(Some((found, tensors)))
}

/// Like [`plain_args`], for arguments that are known to be tensors and arrays.
fn all_args<'a, 'py>(
    call: &mut Call<'py>,
    args: &'a [Bound<'py, PyAny>],
) -> PyResult<(Vec<Arg<'a>>, bool)> {
    let tensors = args.iter().any(|arg| arg.cast_exact::<PyTensor>().is_ok());
    let args = args.iter().map(|arg| call.array("argument", arg)).collect::<PyResult<_>>()?;
    Ok((args, tensors))
}

/// The traces of one function.
#[pyclass(name = "_Traces", module = "inlay._inlay", frozen)]
pub(crate) struct PyTraces {
    traces: Traces<Key, Traced>,
    donate: bool,
    /// The arguments that the function writes when it runs itself.
    written: Written,
}

#[pymethods]
impl PyTraces {
    #[new]
    fn new(donate: bool) -> Self {
        PyTraces { traces: Traces::default(), donate, written: Written::default() }
    }

    /// Runs the trace for arguments that are all tensors and arrays, and returns the function's
    /// result. Returns NotImplemented if there is no such trace, or if it must not be used.
    fn call<'py>(
        &self,
        py: Python<'py>,
        args: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut call = Call::new(py, "jit");
        if let Some((args, tensors)) = plain_args(&mut call, &args)?
            && let Some(trace) = self.traces.get(&Key::new(&args, None)?, || sizes(&args))
        {
            return trace.run(call, &args, tensors);
        }
        Ok(PyNotImplemented::get(py).to_owned().into_any())
    }

    /// Returns the trace for the tensors and arrays `args` and the other arguments, which
    /// `constants` describes. If there is none, it is made: `function` is called with symbolic
    /// tensors for `args`. It returns the tensors of its result and a callable that builds the
    /// result from their values, or None.
    fn find<'py>(
        &self,
        py: Python<'py>,
        args: Vec<Bound<'py, PyAny>>,
        constants: Option<&Bound<'py, PyAny>>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<PyTrace> {
        let mut call = Call::new(py, "jit");
        let (args, _) = all_args(&mut call, &args)?;
        let key = Key::new(&args, constants)?;
        let trace = |sizes: Option<&Sizes>| {
            let (program, inputs) = call.run(0, || Trace::start(&key.kinds, sizes))?;
            let results = while_tracing(|| returned(function, inputs));
            // A tensor of the trace that is used later must not add to the program unnoticed.
            program.close();
            let (results, rebuild) = results?;
            let finish = || Trace::finish(&program, &results, self.donate);
            Ok(Traced { trace: call.run(usize::MAX, finish)?, rebuild })
        };
        let needs_sizes = |error: &PyErr| error.is_instance_of::<_SizesNeeded>(py);
        let trace = self.traces.get_or_trace(&key, || sizes(&args), trace, needs_sizes);
        trace.map(PyTrace).map_err(|error: PyErr| match needs_sizes(&error) {
            true => {
                let text = format!(
                    "jit: the function asks for a size that depends on values, which is not known \
                     when it is traced ({})",
                    error.value(py)
                );
                Class::Value.error(py, text)
            }
            false => error,
        })
    }

    /// Calls the function itself, with tensors for `args`, which its writes in place don't change.
    /// `function` is that of `find`. This is for calls that are recorded: for a gradient, or by the
    /// trace of an outer function.
    fn run_itself<'py>(
        &self,
        py: Python<'py>,
        args: Vec<Bound<'py, PyAny>>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut call = Call::new(py, "jit");
        let (args, _) = all_args(&mut call, &args)?;
        let args: Vec<&Tensor> = args.iter().map(|arg| &**arg).collect();
        // An exception such as `KeyboardInterrupt` must not be dropped.
        let is_final = |returned: &PyResult<_>| {
            returned.as_ref().is_err_and(|error: &PyErr| !error.is_instance_of::<PyException>(py))
        };
        let run = |args| returned(function, args);
        let protected = self.written.protect(&args, run, is_final);
        let (mut results, rebuild) = protected.map_err(|error| call.raise(&error))??;
        call.run(usize::MAX, || Tensor::separate_all(&mut results, &args))?;
        let give = |tensor| Ok(Bound::new(py, PyTensor::new(tensor))?.into_any());
        let results = results.into_iter().map(give).collect::<PyResult<_>>()?;
        rebuilt(py, results, rebuild.as_ref())
    }

    /// The plans of all traces, as text.
    fn explain(&self) -> String {
        let plans = self.traces.all();
        let plans: Vec<String> =
            plans.iter().map(|traced| traced.trace.plan().to_string()).collect();
        plans.join("\n")
    }
}

/// A trace of a function.
#[pyclass(name = "_Trace", module = "inlay._inlay", frozen)]
pub(crate) struct PyTrace(Arc<Traced>);

#[pymethods]
impl PyTrace {
    /// Runs the trace on the arguments that are tensors and arrays, and returns the function's
    /// result.
    fn run<'py>(
        &self,
        py: Python<'py>,
        args: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut call = Call::new(py, "jit");
        let (args, tensors) = all_args(&mut call, &args)?;
        self.0.run(call, &args, tensors)
    }
}
