//! The extension module `inlay._inlay`. It converts arguments, calls the library, and maps its
//! errors to Python exceptions.
// With the feature `gpu`, the type of a program is deep: it is followed when threads share one.
#![recursion_limit = "256"]
#![deny(unsafe_code)]

mod bridges;
mod constructors;
mod convert;
mod device;
mod dlpack;
mod dtype;
mod error;
mod foreign;
mod gil;
mod graph;
mod numpy;
mod ops;
mod runtime;
mod tensor;
mod xla;

use pyo3::prelude::*;

/// The compiled part of Inlay; use it through the package ``inlay``.
#[pymodule]
fn _inlay(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Every conversion needs NumPy. If NumPy is missing, this raises an ImportError; a later call
    // would panic.
    module.py().import("numpy")?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_function(wrap_pyfunction!(tensor::rebuild, module)?)?;
    dtype::register(module)?;
    constructors::register(module)?;
    runtime::register(module)?;
    device::register(module)?;
    graph::register(module)?;
    xla::register(module)?;
    // This call replaces the `__all__` that PyO3 filled with all names.
    ops::register(module)
}
