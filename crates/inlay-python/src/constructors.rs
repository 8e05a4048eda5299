//! Functions that make tensors from Python objects, by a copy or over the same memory.

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::convert::Call;
use crate::dlpack::{self, Purpose, Subject, Table, Watch};
use crate::dtype;
use crate::error::{Class, type_name};
use crate::tensor::PyTensor;

/// Adds the constructors to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(to_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(from_numpy, module)?)?;
    module.add_function(wrap_pyfunction!(from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(_adopt, module)?)
}

/// A new tensor with a copy of the values of `data`.
///
/// Arrays, NumPy scalars and tensors keep their dtype, also inside of lists. Python numbers and
/// lists of them become ``int64``, ``float32``, ``complex64`` or ``bool``. With `dtype`, values are
/// cast to it.
///
/// >>> import inlay
/// >>> inlay.to_tensor([[1, 2], [3, 4]]).dtype
/// inlay.int64
/// >>> inlay.to_tensor([1, 2], dtype="float32").tolist()
/// [1.0, 2.0]
///
/// The copy has no gradient history, even of tensors in a list; ``inlay.stack`` keeps theirs. With
/// ``stop_gradient=False`` it is a leaf that requires a gradient. `device` is ``'cpu'`` or
/// ``'gpu'``; ``inlay.set_device`` sets the default.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, stop_gradient=true, *, device=None))]
fn to_tensor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    stop_gradient: bool,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<PyTensor> {
    let device = match device {
        Some(device) => crate::device::parse("to_tensor", device)?,
        None => inlay::current_device(),
    };
    let wanted = dtype::parse_optional("to_tensor", dtype)?;
    let mut call = Call::new(py, "to_tensor");
    let (tensor, default) = call.source("data", data)?;
    let dtype = wanted.unwrap_or(default);
    let copied = call.run(tensor.numel(), || {
        let tensor = tensor.detach();
        let copy = match (dtype == tensor.dtype(), device == tensor.device()) {
            (true, true) => tensor.copy(),
            (true, false) => tensor.to(device),
            (false, _) => tensor.cast(dtype)?.to(device),
        }?;
        if stop_gradient { Ok(copy) } else { copy.with_gradient() }
    });
    copied.map(PyTensor::new)
}

/// A tensor over the memory of an array. A write to one changes the other.
///
/// The array may have any strides. A read-only array gives a read-only tensor.
///
/// >>> import inlay, numpy as np
/// >>> a = np.zeros(3, dtype="float32")
/// >>> t = inlay.from_numpy(a)
/// >>> a[1] = 5
/// >>> t.tolist()
/// [0.0, 5.0, 0.0]
#[pyfunction]
fn from_numpy<'py>(py: Python<'py>, array: &Bound<'py, PyAny>) -> PyResult<PyTensor> {
    let Ok(array) = array.cast::<PyUntypedArray>() else {
        let text = format!("from_numpy: array is a {}", type_name(array));
        let other = if array.hasattr("__dlpack__")? { "; from_dlpack takes others" } else { "" };
        return Err(Class::Type.error(py, format!("{text}, expected a NumPy array{other}")));
    };
    Call::new(py, "from_numpy").shared("array", array).map(PyTensor::new)
}

/// A tensor over the memory of an array of another library, without a copy.
///
/// Takes any object with ``__dlpack__`` whose memory is on the CPU (PyTorch, Paddle, JAX, NumPy),
/// or a DLPack capsule. Read-only memory gives a read-only tensor.
///
/// >>> import inlay, numpy as np
/// >>> inlay.from_dlpack(np.arange(3)).tolist()
/// [0, 1, 2]
#[pyfunction]
fn from_dlpack(x: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    if let Ok(own) = x.cast::<PyTensor>() {
        return Ok(PyTensor::new(own.get().inner().clone()));
    }
    let tensor = dlpack::import(
        x,
        Subject { op: "from_dlpack", arg: "x" },
        Purpose::Read,
        &Watch::default(),
    );
    tensor.map(PyTensor::new)
}

/// A tensor of another library's class over the memory of ``x``, without a copy. The class must
/// have DLPack's table of C functions.
#[pyfunction]
#[pyo3(signature = (x, cls, /))]
fn _adopt<'py>(x: &Bound<'py, PyTensor>, cls: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let Some(table) = Table::of_class(cls) else {
        let name = cls.fully_qualified_name()?;
        let text = format!("_adopt: cls is {name}, which has no __dlpack_c_exchange_api__");
        return Err(Class::Type.error(py, text));
    };
    table.export(py, "_adopt", x.get().inner().clone())
}
