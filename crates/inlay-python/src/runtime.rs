//! Functions that configure the number of threads and the memory pool.

use std::ffi::CString;

use inlay::MAX_THREADS;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::Call;
use crate::error::Class;
use crate::gil::detached;

/// Adds the functions to the module, and warns of environment variables that can't be used.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    for problem in inlay::environment_problems() {
        let text = CString::new(problem)?;
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
    }
    module.add_function(wrap_pyfunction!(set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(_use_openmp, module)?)?;
    module.add_function(wrap_pyfunction!(_recorded, module)?)?;
    module.add_function(wrap_pyfunction!(memory_stats, module)?)?;
    module.add_function(wrap_pyfunction!(empty_cache, module)?)?;
    module.add_function(wrap_pyfunction!(set_cache_limit, module)?)
}

/// Sets how many threads an operation may use. Results do not depend on it.
///
/// The environment variable ``INLAY_NUM_THREADS`` sets the initial value. The default is one thread
/// per core.
#[pyfunction]
fn set_num_threads(n: &Bound<'_, PyAny>) -> PyResult<()> {
    let op = "set_num_threads";
    let threads = Call::new(n.py(), op).integer("n", n)?;
    match usize::try_from(threads) {
        Ok(threads @ 1..=MAX_THREADS) => {
            inlay::set_num_threads(threads);
            Ok(())
        }
        _ => {
            let text = format!("{op}: n is {threads}, expected 1 to {MAX_THREADS}");
            Err(Class::Value.error(n.py(), text))
        }
    }
}

/// The number of threads that an operation may use.
#[pyfunction]
fn get_num_threads() -> usize {
    inlay::num_threads()
}

/// Makes operations use the threads of the OpenMP runtime at this path, which is loaded already.
/// Returns whether they do.
#[pyfunction]
fn _use_openmp(path: &str) -> bool {
    #[cfg(unix)]
    return inlay::use_openmp(path);
    #[cfg(not(unix))]
    return {
        let _ = path;
        false
    };
}

/// Calls a function, and returns how its work was split among threads: the processor time of the
/// calling thread between the phases, and for each phase the times of its parts, in ns.
#[pyfunction]
fn _recorded(call: &Bound<'_, PyAny>, in_turn: bool) -> PyResult<(u64, Vec<Vec<u64>>)> {
    let (result, recorded) = inlay::recorded(in_turn, || call.call0());
    result?;
    Ok((recorded.alone, recorded.phases))
}

/// The statistics of the memory pool, as a dict.
///
/// ``in_use``, ``peak``, ``cached`` and ``limit`` are in bytes. ``fresh`` and ``reused`` count the
/// blocks that were allocated from the system and reused. Blocks below 1 KiB are not counted.
#[pyfunction]
fn memory_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = inlay::memory_stats();
    let dict = PyDict::new(py);
    dict.set_item("in_use", stats.in_use)?;
    dict.set_item("peak", stats.peak)?;
    dict.set_item("cached", stats.cached)?;
    dict.set_item("limit", stats.limit)?;
    dict.set_item("fresh", stats.fresh)?;
    dict.set_item("reused", stats.reused)?;
    Ok(dict)
}

/// Returns all memory that is kept for reuse to the system, also GPU memory.
#[pyfunction]
fn empty_cache(py: Python<'_>) {
    detached(py, || {
        inlay::empty_cache();
        #[cfg(feature = "gpu")]
        inlay::empty_gpu_cache();
    });
}

/// Sets how many bytes are kept for reuse. Memory above the limit is returned to the system.
///
/// The environment variable ``INLAY_CACHE_LIMIT`` sets the initial value.
#[pyfunction]
fn set_cache_limit(bytes: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, op) = (bytes.py(), "set_cache_limit");
    let limit = Call::new(py, op).bound("bytes", bytes)?;
    let Ok(limit) = usize::try_from(limit) else {
        let text = format!("{op}: bytes is {limit}, expected at least 0");
        return Err(Class::Value.error(py, text));
    };
    detached(py, || inlay::set_cache_limit(limit));
    Ok(())
}
