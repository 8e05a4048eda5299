//! Gradients: `backward`, `grad`, and what a tensor tells of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use inlay::{Error, GradOptions, NoGrad, Tensor};
use pyo3::prelude::*;

use super::{Maybe, Object};
use crate::convert::{Arg, Call};
use crate::error::type_name;
use crate::tensor::PyTensor;

#[pymethods]
impl PyTensor {
    /// Whether gradients stop here: True unless the tensor wants one or was computed from one that does.
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

    /// The gradient that ``backward`` has collected for this leaf, or None.
    #[getter]
    fn grad(&self, py: Python<'_>) -> Option<PyTensor> {
        // A backward that adds to it may wait for the GIL.
        py.detach(|| self.inner().grad()).map(PyTensor::new)
    }

    #[setter]
    fn set_grad(&self, py: Python<'_>, grad: Option<&Bound<'_, PyTensor>>) -> PyResult<()> {
        let call = Call::new(py, "grad");
        let grad = grad.map(|grad| grad.get().inner());
        call.run(usize::MAX, || self.inner().set_grad(grad))
    }

    /// Forget the collected gradient.
    fn clear_grad(&self, py: Python<'_>) {
        py.detach(|| self.inner().clear_grad());
    }

    /// The same elements, in the same memory, without their history.
    fn detach(&self) -> PyTensor {
        PyTensor::new(self.inner().detach())
    }

    /// Add to the gradient of every leaf that this tensor was computed from.
    ///
    /// `grad` is the gradient of this tensor; it may be left out, and is then 1, for a single element.
    /// What the graph kept is freed on the way unless `retain_graph`.
    ///
    /// >>> import inlay
    /// >>> x = inlay.to_tensor([1., 2., 3.], stop_gradient=False)
    /// >>> (x * x).sum().backward()
    /// >>> x.grad.tolist()
    /// [2.0, 4.0, 6.0]
    #[pyo3(signature = (grad=None, retain_graph=false))]
    fn backward<'py>(
        slf: &Bound<'py, Self>,
        grad: Maybe<'_, 'py>,
        retain_graph: bool,
    ) -> PyResult<()> {
        let mut call = Call::new(slf.py(), "backward");
        let tensor = slf.get().inner();
        let grad =
            Call::some(grad).map(|grad| call.values("grad", grad, tensor.dtype())).transpose()?;
        call.run(usize::MAX, || tensor.backward(grad.as_deref(), retain_graph))
    }

    /// Call `hook` with the gradient of this tensor whenever ``backward`` comes by.
    ///
    /// What the hook returns, unless None, takes the gradient's place. Returns a handle whose
    /// ``remove()`` ends it.
    fn register_hook(&self, py: Python<'_>, hook: Py<PyAny>) -> PyResult<HookHandle> {
        let active = Arc::new(AtomicBool::new(true));
        let handle = HookHandle { active: Arc::clone(&active) };
        let call = Call::new(py, "register_hook");
        let run = move |grad: &Tensor| {
            if !active.load(Ordering::Relaxed) {
                return Ok(None);
            }
            Python::attach(|py| {
                let given = Bound::new(py, PyTensor::new(grad.clone()));
                let result = given.and_then(|given| hook.bind(py).call1((given,)));
                let failed = |error: PyErr| Error::Hook {
                    text: format!("{}: {}", type_name(error.value(py).as_any()), error.value(py)),
                };
                let result = result.map_err(failed)?;
                if result.is_none() {
                    return Ok(None);
                }
                match result.cast::<PyTensor>() {
                    Ok(tensor) => Ok(Some(tensor.get().inner().clone())),
                    Err(_) => {
                        let text = format!("it returned a {}, not a Tensor", type_name(&result));
                        Err(Error::Hook { text })
                    }
                }
            })
        };
        call.run(0, || self.inner().register_hook(run))?;
        Ok(handle)
    }
}

/// Ends a hook.
#[pyclass(module = "inlay", frozen)]
pub(crate) struct HookHandle {
    active: Arc<AtomicBool>,
}

#[pymethods]
impl HookHandle {
    /// End the hook: it is not called any more.
    fn remove(&self) {
        self.active.store(false, Ordering::Relaxed);
    }
}

/// The gradients of `outputs` with respect to `inputs`, as a list; leaves collect nothing.
///
/// Args:
///     outputs, inputs: a tensor or a list of them.
///     grad_outputs: the gradients of the outputs, or None where an output has a single element.
///     retain_graph: keep what the graph holds for another pass; None does what `create_graph` says.
///     create_graph: record the computation of the gradients, so that they have gradients themselves.
///     allow_unused: give None for an input on which no output depends, instead of an error.
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
        Call::items(object)?.iter().map(tensor).collect::<PyResult<Vec<Tensor>>>()
    };
    let (outputs, inputs) = (tensors("outputs", outputs)?, tensors("inputs", inputs)?);
    let seeds = match Call::some(grad_outputs) {
        None => vec![],
        Some(seeds) => {
            let items = Call::items(seeds)?;
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

/// Record operations on this thread or not; returns whether they were.
#[pyfunction]
pub(super) fn _set_grad_enabled(enabled: bool) -> bool {
    NoGrad::switch(enabled)
}
