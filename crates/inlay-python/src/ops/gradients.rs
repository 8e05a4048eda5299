//! Gradients: `backward`, `grad`, and the gradient attributes of a tensor.

use inlay::{GradOptions, NoGrad, Tensor};
use pyo3::prelude::*;

use super::{Maybe, Object};
use crate::convert::{Arg, Call};
use crate::gil::detached;
use crate::tensor::PyTensor;

#[pymethods]
impl PyTensor {
    /// Whether gradients stop here. False if the tensor requires a gradient or was computed from
    /// one that does.
    #[getter]
    fn stop_gradient(&self) -> bool {
        self.inner().stop_gradient()
    }

    #[setter]
    fn set_stop_gradient(&self, py: Python<'_>, stop: bool) -> PyResult<()> {
        let call = Call::new(py, "stop_gradient");
        call.run(0, || self.inner().set_stop_gradient(stop))
    }

    /// Whether the tensor was not computed by recorded operations.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.inner().is_leaf()
    }

    /// The gradient that ``backward`` has accumulated in this leaf, or in a tensor that retains
    /// its gradient; otherwise None.
    #[getter]
    fn grad(&self, py: Python<'_>) -> Option<PyTensor> {
        // A `backward` of another thread may hold the lock of the gradient and wait for the GIL, so
        // the GIL is released here.
        detached(py, || self.inner().grad()).map(PyTensor::new)
    }

    #[setter]
    fn set_grad(&self, py: Python<'_>, grad: Option<&Bound<'_, PyTensor>>) -> PyResult<()> {
        let call = Call::new(py, "grad");
        let grad = grad.map(|grad| grad.get().inner());
        call.run(usize::MAX, || self.inner().set_grad(grad))
    }

    /// Delete the accumulated gradient.
    fn clear_grad(&self, py: Python<'_>) {
        detached(py, || self.inner().clear_grad());
    }

    /// A tensor over the same memory, without gradient history.
    fn detach(&self) -> PyTensor {
        PyTensor::new(self.inner().detach())
    }

    /// Compute the gradients of all leaves that this tensor was computed from, and add them to
    /// their ``grad``.
    ///
    /// `grad` is the gradient of this tensor. It may be left out if the tensor has one element, and
    /// is then 1. The values that the graph has saved are freed, unless `retain_graph` is true.
    ///
    /// >>> import inlay
    /// >>> x = inlay.to_tensor([1., 2., 3.], stop_gradient=False)
    /// >>> (x * x).sum().backward()
    /// >>> x.grad.tolist()
    /// [2.0, 4.0, 6.0]
    #[pyo3(
        signature = (grad=None, retain_graph=None),
        text_signature = "($self, grad=None, retain_graph=False)"
    )]
    fn backward<'py>(
        slf: &Bound<'py, Self>,
        grad: Maybe<'_, 'py>,
        retain_graph: Maybe<'_, 'py>,
    ) -> PyResult<()> {
        let mut call = Call::new(slf.py(), "backward");
        let retain_graph = retain_graph.map(|flag| call.flag("retain_graph", flag)).transpose()?;
        let retain_graph = retain_graph.unwrap_or(false);
        let tensor = slf.get().inner();
        let grad =
            Call::some(grad).map(|grad| call.values("grad", grad, tensor.dtype())).transpose()?;
        call.run(usize::MAX, || tensor.backward(grad.as_deref(), retain_graph))
    }
}

/// The gradients of `outputs` with respect to `inputs`, as a list. The ``grad`` of leaves does not
/// change.
///
/// Args:
///     outputs, inputs: a tensor or a list of them.
///     grad_outputs: the gradients of the outputs, or None where an output has a single element.
///     retain_graph: keep the values that the graph has saved, for another pass. The default is the
///         value of `create_graph`.
///     create_graph: record the computation of the gradients, so that they have gradients, too.
///     allow_unused: return None for an input that no output depends on, instead of an error.
///
/// >>> import inlay
/// >>> x = inlay.to_tensor([2.], stop_gradient=False)
/// >>> (g,) = inlay.grad(x * x * x, x, create_graph=True)
/// >>> (h,) = inlay.grad(g, x)
/// >>> g.item(), h.item()
/// (12.0, 12.0)
#[pyfunction]
#[pyo3(signature = (
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=false, allow_unused=false
))]
pub(super) fn grad<'py>(
    py: Python<'py>,
    outputs: Object<'_, 'py>,
    inputs: Object<'_, 'py>,
    grad_outputs: Maybe<'_, 'py>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: bool,
) -> PyResult<Vec<Option<PyTensor>>> {
    let mut call = Call::new(py, "grad");
    let tensors = |arg: &'static str, object: Object<'_, 'py>| {
        let tensor = |item: &Bound<'py, PyAny>| match item.cast::<PyTensor>() {
            Ok(tensor) => Ok(tensor.get().inner().clone()),
            Err(_) => Err(call.expected(arg, item, "a Tensor")),
        };
        Call::items(object).iter().map(tensor).collect::<PyResult<Vec<Tensor>>>()
    };
    let (outputs, inputs) = (tensors("outputs", outputs)?, tensors("inputs", inputs)?);
    let seeds = match Call::some(grad_outputs) {
        None => vec![],
        Some(seeds) => {
            let items = Call::items(seeds);
            let seed = |(k, item): (usize, &Bound<'py, PyAny>)| {
                let dtype = outputs.get(k).map_or(inlay::DType::F32, Tensor::dtype);
                let seed = Call::some(Some(item));
                seed.map(|seed| call.values("grad_outputs", seed, dtype).map(Arg::into_owned))
                    .transpose()
            };
            items.iter().enumerate().map(seed).collect::<PyResult<Vec<Option<Tensor>>>>()?
        }
    };
    let retain_graph = retain_graph.unwrap_or(create_graph);
    let options = GradOptions { create_graph, retain_graph, allow_unused };
    let found = call.run(usize::MAX, || {
        let (outputs, inputs) =
            (outputs.iter().collect::<Vec<_>>(), inputs.iter().collect::<Vec<_>>());
        let seeds = seeds.iter().map(Option::as_ref).collect::<Vec<_>>();
        Tensor::grad_of(&outputs, &inputs, &seeds, options)
    })?;
    Ok(found.into_iter().map(|grad| grad.map(PyTensor::new)).collect())
}

/// Whether operations on this thread are recorded for gradients.
#[pyfunction]
pub(super) fn is_grad_enabled() -> bool {
    inlay::is_grad_enabled()
}

/// Set whether operations on this thread are recorded. Returns the previous setting.
#[pyfunction]
pub(super) fn _set_grad_enabled(enabled: bool) -> bool {
    NoGrad::switch(enabled)
}
