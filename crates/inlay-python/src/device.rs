//! Devices: which there are, and where tensors are made.

use inlay::Device;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::{Class, raise, type_name};

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_device, module)?)?;
    module.add_function(wrap_pyfunction!(get_device, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_memory_stats, module)?)
}

/// The device of a name.
pub(crate) fn parse(op: &str, device: &Bound<'_, PyAny>) -> PyResult<Device> {
    let Ok(name) = device.cast::<PyString>() else {
        let got = type_name(device);
        let text = format!("{op}: device is a {got}, expected 'cpu' or 'gpu'");
        return Err(Class::Type.error(device.py(), text));
    };
    let name = name.to_string_lossy();
    name.parse().map_err(|_| {
        let text = format!("{op}: device is '{name}', expected 'cpu' or 'gpu'");
        Class::Value.error(device.py(), text)
    })
}

/// Sets where tensors are made without ``device=``: ``'cpu'`` or ``'gpu'``.
///
/// Tensors that are there already stay where they are. Asking for the GPU opens it, and fails if there
/// is none.
///
/// >>> import inlay
/// >>> inlay.set_device('cpu')
/// >>> inlay.zeros([2]).device
/// 'cpu'
#[pyfunction]
fn set_device(device: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = device.py();
    let device = parse("set_device", device)?;
    py.detach(|| inlay::set_device(device)).map_err(|error| raise(py, &error))
}

/// Where tensors are made without ``device=``.
///
/// >>> import inlay
/// >>> inlay.get_device()
/// 'cpu'
#[pyfunction]
fn get_device() -> &'static str {
    inlay::current_device().name()
}

/// The devices of this machine, as dicts: the CPU first, then the GPUs, of which the first is used.
///
/// ``name``, ``backend`` and ``driver`` are the system's words; ``software`` tells of a GPU that a
/// program on the CPU plays. ``max_buffer`` bounds the bytes of a tensor, ``max_binding`` those that
/// a kernel sees at once (larger tensors take several); ``float64`` tells whether it computes with
/// 64-bit floats.
///
/// >>> import inlay
/// >>> inlay.devices()[0]["device"]
/// 'cpu'
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for found in py.detach(inlay::devices) {
        let dict = PyDict::new(py);
        dict.set_item("device", found.device.name())?;
        dict.set_item("name", found.name)?;
        dict.set_item("backend", found.backend)?;
        dict.set_item("driver", found.driver)?;
        dict.set_item("software", found.is_software)?;
        dict.set_item("max_buffer", found.max_buffer)?;
        dict.set_item("max_binding", found.max_binding)?;
        dict.set_item("float64", found.has_float64)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Waits until everything that was asked of the GPU is done.
///
/// Operations there may return before; whatever reads a result waits for it by itself. This is for
/// those who measure.
#[pyfunction]
fn synchronize(py: Python<'_>) -> PyResult<()> {
    py.detach(inlay::synchronize).map_err(|error| raise(py, &error))
}

/// What the GPU's memory pool holds and has done, as a dict; None as long as no GPU is open.
///
/// ``cached`` are bytes that wait to be used again; ``fresh`` and ``reused`` count buffers that were
/// made and buffers that served again, ``submissions`` what was submitted to the device.
#[pyfunction]
fn gpu_memory_stats(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    #[cfg(feature = "gpu")]
    if let Some(stats) = inlay::gpu_memory_stats() {
        let dict = PyDict::new(py);
        dict.set_item("cached", stats.cached)?;
        dict.set_item("fresh", stats.made)?;
        dict.set_item("reused", stats.reused)?;
        dict.set_item("submissions", stats.submissions)?;
        return Ok(Some(dict));
    }
    let _ = py;
    Ok(None)
}
