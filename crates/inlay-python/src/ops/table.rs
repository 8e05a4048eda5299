//! `inlay.operations()`: the table of operations, for tools that process all of them.

use inlay::{Argument, Operation, Preset};
use pyo3::prelude::*;

/// An argument of an operation.
#[pyclass(name = "Argument", module = "inlay", frozen)]
pub(crate) struct PyArgument(&'static Argument);

#[pymethods]
impl PyArgument {
    /// The name.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    /// The kind: ``'Tensor'``, ``'Index'``, ``'Mask'``, ``'Like'`` (a tensor of the first tensor's
    /// dtype), ``'Int'``, ``'Flag'`` and so on.
    #[getter]
    fn kind(&self) -> String {
        format!("{:?}", self.0.kind)
    }

    /// Whether the argument has no default.
    #[getter]
    fn required(&self) -> bool {
        self.0.default.is_none()
    }

    /// The default. It is also None if the argument is required.
    #[getter]
    fn default(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self.0.default {
            Some(Preset::Int(value)) => value.into_pyobject(py)?.into_any().unbind(),
            Some(Preset::Flag(value)) => value.into_pyobject(py)?.to_owned().into_any().unbind(),
            Some(Preset::Reduce(reduce)) => reduce.name().into_pyobject(py)?.into_any().unbind(),
            Some(Preset::Assign) => "assign".into_pyobject(py)?.into_any().unbind(),
            Some(Preset::DType(dtype)) => dtype.name().into_pyobject(py)?.into_any().unbind(),
            _ => py.None(),
        })
    }

    /// The other names that are accepted for the argument.
    #[getter]
    fn aliases(&self) -> Vec<&'static str> {
        self.0.aliases().collect()
    }

    /// Whether the argument can only be passed by name.
    #[getter]
    fn keyword_only(&self) -> bool {
        self.0.keyword_only
    }

    fn __repr__(&self) -> String {
        format!("<Argument {}: {:?}>", self.0, self.0.kind)
    }
}

/// The declaration of an operation.
#[pyclass(name = "Operation", module = "inlay", frozen)]
pub(crate) struct PyOperation(&'static Operation);

#[pymethods]
impl PyOperation {
    /// The name.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    /// The name of the in-place form, which writes into its first argument, or None.
    #[getter]
    fn twin(&self) -> Option<&'static str> {
        self.0.twin
    }

    /// The arguments, in order.
    #[getter]
    fn arguments(&self) -> Vec<PyArgument> {
        self.0.arguments.iter().map(PyArgument).collect()
    }

    /// The names of the arguments that have a gradient.
    #[getter]
    fn gradients(&self) -> Vec<&'static str> {
        self.0.gradients.to_vec()
    }

    /// The name of the argument that also takes its integers one by one, as in ``zeros(2, 3)``, or
    /// None.
    #[getter]
    fn gathers(&self) -> Option<&'static str> {
        self.0.gathers().map(|place| self.0.arguments[place].name)
    }

    /// The kind of the result: ``'Fresh'``, ``'View'``, ``'ViewOrCopy'``, or ``'Tensor'`` if the
    /// result is a Tensor even when no argument is one.
    #[getter]
    fn returns(&self) -> String {
        format!("{:?}", self.0.returns)
    }

    /// Whether the operation is also a method of `Tensor`.
    #[getter]
    fn is_method(&self) -> bool {
        self.0.is_method()
    }

    /// The first paragraph of the documentation.
    #[getter]
    fn summary(&self) -> String {
        self.0.summary()
    }

    /// The documentation.
    #[getter]
    fn doc(&self) -> String {
        self.0.doc()
    }

    fn __repr__(&self) -> String {
        format!("<Operation {}{}>", self.0.name, super::entry::signature(self.0, false))
    }
}

/// The table of operations. Each entry has the name, the arguments with kinds and defaults, the
/// arguments that have a gradient, the name of the in-place form, and the documentation.
///
/// >>> import inlay
/// >>> writes = [op.name for op in inlay.operations() if op.twin]
/// >>> 'slice_scatter' in writes
/// True
/// >>> scatter = next(op for op in inlay.operations() if op.name == 'scatter')
/// >>> scatter.gradients
/// ['x', 'updates']
/// >>> [(arg.name, arg.kind, arg.default) for arg in scatter.arguments[3:5]]
/// [('overwrite', 'Flag', True), ('axis', 'Int', 0)]
/// >>> scatter.arguments[4].aliases
/// ['dim']
#[pyfunction]
fn operations() -> Vec<PyOperation> {
    inlay::operations().iter().map(|operation| PyOperation(operation)).collect()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyArgument>()?;
    module.add_class::<PyOperation>()?;
    module.add_function(wrap_pyfunction!(operations, module)?)
}
