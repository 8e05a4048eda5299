//! The extension module `inlay._inlay`: converts arguments, calls the library, maps errors.
#![deny(unsafe_code)]

mod constructors;
mod convert;
mod device;
mod dlpack;
mod dtype;
mod error;
mod foreign;
mod graph;
mod numpy;
mod ops;
mod runtime;
mod tensor;

use pyo3::prelude::*;

/// The compiled part of Inlay; use it through the package ``inlay``.
#[pymodule]
fn _inlay(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Everything needs NumPy. This raises an ImportError now, instead of a panic later.
    module.py().import("numpy")?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_function(wrap_pyfunction!(tensor::rebuild, module)?)?;
    dtype::register(module)?;
    constructors::register(module)?;
    runtime::register(module)?;
    device::register(module)?;
    graph::register(module)?;
    // PyO3 has set `__all__` to all names. Only the package has a public list of names.
    ops::register(module)
}
