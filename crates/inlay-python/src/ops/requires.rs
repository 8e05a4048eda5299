//! PyTorch's names: `requires_grad`, the opposite of `stop_gradient`, and `retain_grad`.

use pyo3::prelude::*;

use crate::convert::Call;
use crate::tensor::PyTensor;

#[pymethods]
impl PyTensor {
    /// Whether the tensor requires a gradient or was computed from one that does: the opposite of
    /// ``stop_gradient``.
    #[getter]
    fn requires_grad(&self) -> bool {
        !self.inner().stop_gradient()
    }

    #[setter]
    fn set_requires_grad(&self, py: Python<'_>, requires_grad: bool) -> PyResult<()> {
        let call = Call::new(py, "requires_grad");
        call.run(0, || self.inner().set_stop_gradient(!requires_grad))
    }

    /// Set ``requires_grad``, and return the tensor.
    ///
    /// >>> import inlay
    /// >>> x = inlay.to_tensor([1., 2.]).requires_grad_()
    /// >>> x.requires_grad, x.stop_gradient
    /// (True, False)
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(
        slf: &Bound<'py, Self>,
        requires_grad: bool,
    ) -> PyResult<Bound<'py, Self>> {
        slf.get().set_requires_grad(slf.py(), requires_grad)?;
        Ok(slf.clone())
    }

    /// Make ``backward`` also keep the gradient of this tensor in ``grad``, although the tensor was
    /// computed. A leaf keeps its gradient anyway.
    ///
    /// >>> import inlay
    /// >>> x = inlay.to_tensor([1., 2.], stop_gradient=False)
    /// >>> y = x * x
    /// >>> y.retain_grads()
    /// >>> (y * y).sum().backward()
    /// >>> y.grad.tolist()
    /// [2.0, 8.0]
    fn retain_grads(&self, py: Python<'_>) -> PyResult<()> {
        Call::new(py, "retain_grads").run(0, || self.inner().retain_grads())
    }

    /// The same as ``retain_grads``, by PyTorch's name.
    fn retain_grad(&self, py: Python<'_>) -> PyResult<()> {
        self.retain_grads(py)
    }
}
