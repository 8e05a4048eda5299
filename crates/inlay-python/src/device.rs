//! Functions that list devices and set the default device.

use inlay::Device;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::{Class, raise, type_name};
use crate::gil::detached;

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_device, module)?)?;
    module.add_function(wrap_pyfunction!(get_device, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_memory_stats, module)?)
}

/// What decides about Mesa's Vulkan layer that asks the display server which device to prefer: the
/// addresses of display servers, a choice by the user, and the switch of the layer.
const DISPLAYS: [&str; 3] = ["XDG_RUNTIME_DIR", "DISPLAY", "MESA_VK_DEVICE_SELECT"];
const LAYER_OFF: &str = "NODEVICE_SELECT";

/// Calls `work`, which looks for devices, with the GIL released.
///
/// On a system without a display server, Mesa's layer has nothing to ask, and a library that it
/// uses writes an error to stderr. The layer is off during the search then. The layer can be turned
/// off only by a variable of the environment, which is set here, where Python code could set it.
fn search<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    let os = py.import("os")?;
    let environ = os.getattr("environ")?;
    let mut quiet = cfg!(target_os = "linux") && !environ.contains(LAYER_OFF)?;
    for name in DISPLAYS {
        quiet &= !environ.contains(name)?;
    }
    if quiet {
        os.call_method1("putenv", (LAYER_OFF, "1"))?;
    }
    let result = detached(py, work);
    if quiet {
        os.call_method1("unsetenv", (LAYER_OFF,))?;
    }
    Ok(result)
}

/// Opens the GPU if no GPU is open yet.
fn open_gpu(py: Python<'_>) -> PyResult<()> {
    #[cfg(feature = "gpu")]
    if inlay::gpu_memory_stats().is_some() {
        return Ok(());
    }
    let opened = search(py, || inlay::with_device(Device::Gpu, || ()))?;
    opened.map_err(|error| raise(py, &error))
}

/// Converts the name of a device. A GPU is opened.
pub(crate) fn parse(op: &str, device: &Bound<'_, PyAny>) -> PyResult<Device> {
    let Ok(name) = device.cast::<PyString>() else {
        let got = type_name(device);
        let text = format!("{op}: device is a {got}, expected 'cpu' or 'gpu'");
        return Err(Class::Type.error(device.py(), text));
    };
    let name = name.to_string_lossy();
    let found = name.parse().map_err(|_| {
        let text = format!("{op}: device is '{name}', expected 'cpu' or 'gpu'");
        Class::Value.error(device.py(), text)
    })?;
    if found == Device::Gpu {
        open_gpu(device.py())?;
    }
    Ok(found)
}

/// Sets the device of new tensors for calls without ``device=``: ``'cpu'`` or ``'gpu'``.
///
/// Existing tensors are not moved. ``'gpu'`` opens the GPU, and fails if there is none.
///
/// >>> import inlay
/// >>> inlay.set_device('cpu')
/// >>> inlay.zeros([2]).device
/// 'cpu'
#[pyfunction]
fn set_device(device: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = device.py();
    let device = parse("set_device", device)?;
    detached(py, || inlay::set_device(device)).map_err(|error| raise(py, &error))
}

/// The device on which tensors are made by default.
///
/// >>> import inlay
/// >>> inlay.get_device()
/// 'cpu'
#[pyfunction]
fn get_device() -> &'static str {
    inlay::current_device().name()
}

/// The devices of this machine, as dicts: first the CPU, then the GPUs. The first GPU is used.
///
/// ``name``, ``backend`` and ``driver`` come from the system. ``software`` is true for a GPU that
/// is emulated on the CPU. ``max_buffer`` is the largest size of a tensor in bytes. ``max_binding``
/// is the largest size of one shader binding in bytes; larger tensors need several. ``float64``
/// says whether the device computes with 64-bit floats.
///
/// >>> import inlay
/// >>> inlay.devices()[0]["device"]
/// 'cpu'
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for found in search(py, inlay::devices)? {
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

/// Waits until the GPU has finished all submitted work.
///
/// Operations on the GPU may return before they are done. Reading a result waits for it, so this is
/// needed only to measure time.
#[pyfunction]
fn synchronize(py: Python<'_>) -> PyResult<()> {
    detached(py, inlay::synchronize).map_err(|error| raise(py, &error))
}

/// The statistics of the GPU memory pool, as a dict. None if no GPU is open.
///
/// ``cached`` is the number of bytes that are kept for reuse. ``fresh`` and ``reused`` count the
/// buffers that were allocated and reused. ``submissions`` counts submissions to the device.
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
