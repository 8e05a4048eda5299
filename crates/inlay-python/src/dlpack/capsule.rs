//! Export and import of tensors as DLPack capsules, the results of `__dlpack__`.
#![expect(unsafe_code, reason = "capsules hold raw pointers")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use inlay::Tensor;
use inlay::interop::dlpack::{
    CPU as CPU_TYPE, CUDA_HOST, Copy, DLManagedTensor, DLManagedTensorVersioned, Form, Managed,
    describe_device,
};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{ffi, intern};

use super::storage::{Storage, Watch, too_small};
use super::{CPU, Purpose, adopt};
use crate::error::{Class, type_name, wrap};
use crate::gil::detached;

/// The arguments of `__dlpack__`.
pub(crate) struct Request<'a, 'py> {
    pub(crate) stream: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_version: Option<(u32, u32)>,
    pub(crate) dl_device: Option<(i32, i32)>,
    pub(crate) copy: Option<bool>,
}

/// A DLPack struct with the names of its capsules.
trait Capsule: Form {
    /// The name of a capsule whose tensor was not taken yet.
    const FRESH: &'static CStr;
    /// The name of a capsule whose tensor was taken.
    const USED: &'static CStr;
}

impl Capsule for DLManagedTensor {
    const FRESH: &'static CStr = c"dltensor";
    const USED: &'static CStr = c"used_dltensor";
}

impl Capsule for DLManagedTensorVersioned {
    const FRESH: &'static CStr = c"dltensor_versioned";
    const USED: &'static CStr = c"used_dltensor_versioned";
}

/// Exports a tensor as a capsule.
pub(crate) fn export<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    request: &Request<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let refuse = |text: String| Class::Buffer.error(py, format!("__dlpack__: {text}"));
    if request.stream.is_some() {
        return Err(refuse("stream is given, which the CPU has none of".to_owned()));
    }
    if let Some(device) = request.dl_device
        && device != CPU
    {
        let name = describe_device(device.0);
        return Err(refuse(format!("dl_device is {name}, expected the CPU")));
    }
    let copy = match request.copy {
        None => Copy::IfNeeded,
        Some(true) => Copy::Always,
        Some(false) => Copy::Never,
    };
    let versioned = request.max_version.is_some_and(|(major, _)| major >= 1);
    if versioned {
        into_capsule::<DLManagedTensorVersioned>(py, tensor, copy)
    } else {
        into_capsule::<DLManagedTensor>(py, tensor, copy)
    }
}

fn into_capsule<'py, F: Capsule>(
    py: Python<'py>,
    tensor: &Tensor,
    copy: Copy,
) -> PyResult<Bound<'py, PyAny>> {
    let managed = detached(py, || tensor.to_dlpack::<F>(copy));
    let managed = managed.map_err(|error| Class::Buffer.error(py, error.to_string()))?.into_raw();
    // SAFETY: `managed` is `NonNull`, the name is static, and `free::<F>` matches the struct of the
    // pointer. If no capsule was made, the pointer still belongs to this function.
    unsafe {
        let capsule =
            ffi::PyCapsule_New(managed.as_ptr().cast(), F::FRESH.as_ptr(), Some(free::<F>));
        Bound::from_owned_ptr_or_err(py, capsule).inspect_err(|_| {
            drop(Managed::from_raw(managed));
        })
    }
}

/// The destructor of a capsule: frees the tensor unless a consumer has taken it.
///
/// # Safety
/// `capsule` was made by [`export`] and is being destroyed.
unsafe extern "C" fn free<F: Capsule>(capsule: *mut ffi::PyObject) {
    // SAFETY: `PyCapsule_IsValid` has checked that this is a capsule with the name `FRESH`. A
    // consumer changes the name when it takes the tensor, so this capsule still owns the tensor.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, F::FRESH.as_ptr()) == 1
            && let Some(managed) = pointer::<F>(capsule, F::FRESH)
        {
            drop(Managed::from_raw(managed));
        }
    }
}

/// Returns the pointer of a capsule, or `None` if the capsule has another name.
///
/// # Safety
/// `capsule` points to a live object.
unsafe fn pointer<F>(capsule: *mut ffi::PyObject, name: &CStr) -> Option<NonNull<F>> {
    // SAFETY: the caller guarantees a live object, and the name is a C string. Python checks the
    // rest.
    let pointer: *mut c_void = unsafe { ffi::PyCapsule_GetPointer(capsule, name.as_ptr()) };
    NonNull::new(pointer.cast())
}

/// Imports an object that has `__dlpack__`, or a capsule. Error messages start with `subject`, the
/// operation and the argument. A storage that may be resized is added to `watch`.
pub(super) fn import(
    object: &Bound<'_, PyAny>,
    subject: &str,
    purpose: Purpose,
    watch: &Watch,
) -> PyResult<Tensor> {
    let py = object.py();
    if object.is_instance_of::<PyCapsule>() {
        return take(object, subject, None);
    }
    let class = object.get_type();
    if !class.hasattr(intern!(py, "__dlpack__")).unwrap_or(false) {
        let text = format!("{subject} is a {}, which has no __dlpack__", type_name(object));
        return Err(Class::Type.error(py, text));
    }
    expect_cpu(object, subject)?;
    let has_storage = class.hasattr(intern!(py, "untyped_storage")).unwrap_or(false);
    let storage = if has_storage { Storage::of(object) } else { None };
    if storage.as_ref().is_some_and(|storage| storage.is_freed(object)) {
        return Err(too_small(object, subject));
    }
    let options = PyDict::new(py);
    options.set_item(intern!(py, "max_version"), (1, 0))?;
    if purpose == Purpose::Write {
        options.set_item(intern!(py, "copy"), false)?;
    }
    let method = intern!(py, "__dlpack__");
    let capsule = match object.call_method(method, (), Some(&options)) {
        // Exporters older than DLPack 1.0 don't have the arguments, and never copy.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0(method),
        result => result,
    };
    let capsule = capsule.map_err(|cause| wrap(py, subject, cause))?;
    if !capsule.is_instance_of::<PyCapsule>() {
        let text = format!("{subject}: __dlpack__ returned a {}", type_name(&capsule));
        return Err(Class::Type.error(py, format!("{text}, expected a capsule")));
    }
    if purpose == Purpose::Write && !is_fresh::<DLManagedTensorVersioned>(&capsule) {
        // JAX, whose arrays are immutable, exports this struct.
        let text = format!(
            "{subject} is a {}, which does not tell whether its memory may be written: if it may, \
             write into inlay.from_dlpack(...)",
            type_name(object)
        );
        return Err(Class::Buffer.error(py, text));
    }
    let tensor = take(&capsule, subject, storage.as_ref().map(|storage| storage.object(py)))?;
    // A subclass may export other memory than its own.
    let storage = storage.filter(|_| is_at(object, tensor.data_ptr()));
    match watch.admits(&tensor, storage) {
        true => Ok(tensor),
        false => Err(too_small(object, subject)),
    }
}

/// Whether the first element of a tensor of PyTorch is at this address.
fn is_at(object: &Bound<'_, PyAny>, address: *const u8) -> bool {
    let found = object.call_method0(intern!(object.py(), "data_ptr"));
    found.and_then(|found| found.extract::<usize>()).is_ok_and(|found| found == address as usize)
}

/// Fails for memory on another device, with a message that names the device.
fn expect_cpu(object: &Bound<'_, PyAny>, subject: &str) -> PyResult<()> {
    let py = object.py();
    let device = match object.call_method0(intern!(py, "__dlpack_device__")) {
        Ok(device) => device,
        // Some exporters lack the method. The device in the struct is checked later in any case.
        Err(error) if error.is_instance_of::<PyAttributeError>(py) => return Ok(()),
        Err(cause) => return Err(wrap(py, subject, cause)),
    };
    // Only the device type is read, because Paddle returns `(1, None)`.
    let kind = device.get_item(0).and_then(|kind| kind.extract::<i32>());
    let kind = kind.map_err(|cause| wrap(py, subject, cause))?;
    if [CPU_TYPE, CUDA_HOST].contains(&kind) {
        return Ok(());
    }
    let device = describe_device(kind);
    let text = format!("{subject} is on {device}, expected the CPU: copy it there first");
    Err(Class::Buffer.error(py, text))
}

/// Takes the tensor of a capsule of either struct. It keeps another object alive too.
fn take(capsule: &Bound<'_, PyAny>, subject: &str, keep: Option<Py<PyAny>>) -> PyResult<Tensor> {
    let found = match is_fresh::<DLManagedTensorVersioned>(capsule) {
        true => take_form::<DLManagedTensorVersioned>(capsule, keep),
        false => take_form::<DLManagedTensor>(capsule, keep),
    };
    found.unwrap_or_else(|| {
        let text =
            format!("{subject} is a capsule that holds no tensor, or whose tensor was taken");
        Err(Class::Value.error(capsule.py(), text))
    })
}

/// Takes the tensor of a capsule of the struct `F`, or returns `None` if the capsule has another
/// name.
fn take_form<F: Capsule>(
    capsule: &Bound<'_, PyAny>,
    keep: Option<Py<PyAny>>,
) -> Option<PyResult<Tensor>> {
    let py = capsule.py();
    if !is_fresh::<F>(capsule) {
        return None;
    }
    // SAFETY: `is_fresh` has checked the name. By the DLPack protocol, a capsule with this name owns
    // a managed tensor of the struct `F`. The new name transfers it to this function.
    let managed = unsafe {
        let managed = pointer::<F>(capsule.as_ptr(), F::FRESH)?;
        if ffi::PyCapsule_SetName(capsule.as_ptr(), F::USED.as_ptr()) != 0 {
            return Some(Err(PyErr::fetch(py)));
        }
        Managed::from_raw(managed)
    };
    Some(adopt(py, managed, keep))
}

/// Whether an object is a capsule with a tensor of the struct `F` that was not taken yet.
fn is_fresh<F: Capsule>(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is borrowed and live, and the name is a C string. Python checks the rest.
    unsafe { ffi::PyCapsule_IsValid(object.as_ptr(), F::FRESH.as_ptr()) == 1 }
}
