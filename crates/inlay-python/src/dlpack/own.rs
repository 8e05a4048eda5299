//! The table of C functions through which other libraries exchange Inlay's tensors.
#![expect(unsafe_code, reason = "the functions are called from C")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::catch_unwind;
use std::ptr::{self, NonNull};

use inlay::interop::dlpack::{
    Copy, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor,
    EXCHANGE_VERSION, Managed, SetError, allocate,
};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::adopt;
use super::classes::CAPSULE;
use crate::error::{Class, type_name};
use crate::tensor::PyTensor;

static TABLE: DLPackExchangeAPI = DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader { version: EXCHANGE_VERSION, prev_api: ptr::null() },
    managed_tensor_allocator: Some(allocator),
    managed_tensor_from_py_object_no_sync: Some(from_object),
    managed_tensor_to_py_object_no_sync: Some(to_object),
    dltensor_from_py_object_no_sync: Some(describe),
    current_work_stream: Some(work_stream),
};

/// The capsule with the table.
pub(crate) fn own_table(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let table = ptr::from_ref(&TABLE).cast_mut().cast();
    // SAFETY: the table and the name are static, so the capsule needs no destructor. The result is
    // a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(table, CAPSULE.as_ptr(), None)) }
}

/// Allocates a tensor from the pool. It needs no GIL.
///
/// # Safety
/// As the DLPack header says: `prototype` and `out` are valid, and `set_error` takes the context and
/// two C strings.
unsafe extern "C" fn allocator(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int {
    // SAFETY: the caller guarantees the prototype.
    let managed = catch_unwind(|| unsafe { allocate(&*prototype) });
    let (kind, text) = match managed {
        Ok(Ok(managed)) => {
            // SAFETY: the caller guarantees a place for the result.
            unsafe { out.write(managed.into_raw().as_ptr()) };
            return 0;
        }
        Ok(Err(error)) if error.kind() == inlay::ErrorKind::Memory => {
            (c"MemoryError", error.to_string())
        }
        Ok(Err(error)) => (c"BufferError", error.to_string()),
        Err(_) => (c"RuntimeError", "managed_tensor_allocator: internal error".to_owned()),
    };
    let text = CString::new(text).unwrap_or_default();
    if let Some(set_error) = set_error {
        let text: *const c_char = text.as_ptr();
        // SAFETY: both strings live until the function returns.
        unsafe { set_error(context, kind.as_ptr(), text) };
    }
    -1
}

/// Exports a tensor as `__dlpack__` does. Memory that DLPack can't describe is copied.
///
/// # Safety
/// As the DLPack header says: the GIL is held, and the pointers are valid.
unsafe extern "C" fn from_object(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    let work = |tensor: &PyTensor| {
        let managed = tensor.inner().to_dlpack::<DLManagedTensorVersioned>(Copy::IfNeeded);
        managed.map_err(|error| error.to_string())
    };
    // SAFETY: the caller guarantees the object and a place for the result.
    unsafe { with_tensor(object, work, |managed| out.write(managed.into_raw().as_ptr())) }
}

/// Describes a tensor. The sizes and strides live as long as the object.
///
/// # Safety
/// As for [`from_object`].
unsafe extern "C" fn describe(object: *mut c_void, out: *mut DLTensor) -> c_int {
    let work = |tensor: &PyTensor| {
        let inner = tensor.inner();
        let expected = inner.expect_elements("to_dlpack").and(inner.expect_cpu("to_dlpack"));
        expected.map_err(|error| error.to_string())?;
        match inner.is_writable() {
            false => Err("to_dlpack: x is read-only, which the struct DLTensor can't say"),
            true => tensor
                .describe()
                .ok_or("to_dlpack: x is strided by parts of an element, which DLPack can't say"),
        }
        .map_err(str::to_owned)
    };
    // SAFETY: the caller guarantees the object and a place for the result.
    unsafe { with_tensor(object, work, |view| out.write(view)) }
}

/// Makes a tensor over the memory of a struct.
///
/// # Safety
/// As the DLPack header says: the GIL is held, and the caller gives up the struct.
unsafe extern "C" fn to_object(
    managed: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller holds the GIL.
    let py = unsafe { Python::assume_attached() };
    let made = NonNull::new(managed).map(|managed| {
        // SAFETY: the caller gives up the struct, whose deleter is called with the GIL held.
        let managed = unsafe { Managed::from_raw(managed) };
        Bound::new(py, PyTensor::new(adopt(py, managed, None)?))
    });
    match made {
        Some(Ok(tensor)) => {
            // SAFETY: the caller guarantees a place for the result.
            unsafe { out.write(tensor.into_ptr().cast()) };
            0
        }
        Some(Err(error)) => raise(error),
        None => refuse("from_dlpack: the struct is null".to_owned()),
    }
}

/// Returns no stream: calls on the CPU have finished when they return.
///
/// # Safety
/// As the DLPack header says: `out` is a place for the result.
unsafe extern "C" fn work_stream(_device: i32, _number: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: the caller guarantees a place for the result.
    unsafe { out.write(ptr::null_mut()) };
    0
}

/// Calls `work` with the tensor of an object, and gives its result to `done`.
///
/// # Safety
/// The GIL is held, and `object` is null or a live object.
unsafe fn with_tensor<T>(
    object: *mut c_void,
    work: impl FnOnce(&PyTensor) -> Result<T, String>,
    done: impl FnOnce(T),
) -> c_int {
    // SAFETY: the caller holds the GIL and guarantees the object.
    let object = unsafe {
        let py = Python::assume_attached();
        Borrowed::<PyAny>::from_ptr_or_opt(py, object.cast())
    };
    let Some(object) = object else {
        return refuse("to_dlpack: the object is null".to_owned());
    };
    let Ok(tensor) = object.cast_exact::<PyTensor>() else {
        return refuse(format!("to_dlpack: x is a {}, expected a Tensor", type_name(&object)));
    };
    match work(tensor.get()) {
        Ok(result) => {
            done(result);
            0
        }
        Err(text) => refuse(text),
    }
}

/// Sets a `BufferError` for the caller.
#[cold]
fn refuse(text: String) -> c_int {
    Python::attach(|py| raise_in(py, Class::Buffer.error(py, text)))
}

/// Sets an exception for the caller.
#[cold]
fn raise(error: PyErr) -> c_int {
    Python::attach(|py| raise_in(py, error))
}

fn raise_in(py: Python<'_>, error: PyErr) -> c_int {
    error.restore(py);
    -1
}
