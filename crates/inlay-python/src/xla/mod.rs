//! The handler through which XLA calls functions of Inlay, for JAX.
//!
//! There is one handler. Its attribute `text` says which function it calls, so a compiled program
//! refers to nothing in this process.

mod abi;
mod buffers;
mod calls;
mod handler;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Returns the handler as a capsule, which `jax.ffi.register_ffi_target` takes.
#[pyfunction]
fn _xla_handler(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    handler::capsule(py)
}

/// Returns the version of XLA's interface that the handler uses: major and minor.
#[pyfunction]
fn _xla_version() -> (i32, i32) {
    abi::VERSION
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_xla_handler, module)?)?;
    module.add_function(wrap_pyfunction!(_xla_version, module)?)
}
