//! The function that XLA calls.
#![expect(unsafe_code, reason = "XLA calls it with raw pointers")]

use std::any::Any;
use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use inlay::ErrorKind;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::abi::{self, CallFrame, Code, sizes};
use super::buffers::{list, tensors_of};
use super::calls;

/// Returns a capsule without a name that holds the address of the handler.
pub(super) fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    let handler: unsafe extern "C" fn(*mut CallFrame) -> *mut abi::Error = handle;
    // SAFETY: the pointer is not null, and the result is a new object or an error is set.
    let capsule = unsafe {
        let capsule = ffi::PyCapsule_New(handler as *mut c_void, ptr::null(), None);
        Bound::from_owned_ptr_or_err(py, capsule)
    }?;
    Ok(capsule.cast_into()?)
}

/// The reason why a call failed.
pub(super) struct Failure {
    code: Code,
    message: String,
}

impl Failure {
    /// A call that XLA should not make.
    pub(super) fn foreign(what: &str) -> Self {
        let message = format!("inlay.jax: {what}; this jaxlib does not match Inlay");
        Failure { code: Code::Internal, message }
    }

    /// An invalid argument.
    pub(super) fn invalid(what: impl AsRef<str>) -> Self {
        let message = format!("inlay.jax: {}", what.as_ref());
        Failure { code: Code::InvalidArgument, message }
    }

    /// A panic, which is a bug in Inlay.
    fn panic(cause: &(dyn Any + Send)) -> Self {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Failure { code: Code::Internal, message: format!("inlay.jax: internal error: {text}") }
    }
}

impl From<inlay::Error> for Failure {
    fn from(error: inlay::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Type | ErrorKind::Value => Code::InvalidArgument,
            ErrorKind::Index => Code::OutOfRange,
            ErrorKind::Memory => Code::ResourceExhausted,
            _ => Code::Internal,
        };
        Failure { code, message: error.to_string() }
    }
}

/// The handler, with XLA's signature. It returns null, or an error that XLA frees. It does not need
/// Python, and does not unwind.
///
/// # Safety
/// `frame` is null or points to a call frame of XLA.
unsafe extern "C" fn handle(frame: *mut CallFrame) -> *mut abi::Error {
    // SAFETY: the caller guarantees a call frame or null.
    let Some(frame) = (unsafe { frame.as_ref() }) else {
        return ptr::null_mut();
    };
    // SAFETY: the frame is XLA's.
    let result = catch_unwind(AssertUnwindSafe(|| unsafe { answer(frame) }));
    let failure = match result {
        Ok(Ok(())) => return ptr::null_mut(),
        Ok(Err(failure)) => failure,
        Err(cause) => {
            let failure = Failure::panic(&*cause);
            // A payload may panic when it is dropped.
            std::mem::forget(cause);
            failure
        }
    };
    // SAFETY: as above.
    unsafe { to_error(frame, failure) }
}

/// Answers XLA: says which version the handler uses, or calls the function.
///
/// # Safety
/// `frame` is a call frame of XLA.
unsafe fn answer(frame: &CallFrame) -> Result<(), Failure> {
    if frame.struct_size < sizes::CALL_FRAME {
        return Err(Failure::foreign("the call frame is too short"));
    }
    // SAFETY: the extensions of XLA's frame are a list of valid structs.
    if unsafe { tell_version(frame.extension) }? {
        return Ok(());
    }
    if frame.stage != abi::EXECUTE {
        return Ok(());
    }
    // SAFETY: as the caller guarantees.
    let text = unsafe { text_of(&frame.attributes) }?;
    // The arrays belong to XLA and end with this call. Every tensor over them holds the owner, so
    // the count tells whether one was kept.
    let owner = Arc::new(());
    let result = {
        // SAFETY: XLA keeps the arrays valid during the call, and only the handler writes results.
        // No tensor outlives the call.
        let (inputs, outputs) = unsafe {
            (tensors_of(&frame.inputs, false, &owner)?, tensors_of(&frame.outputs, true, &owner)?)
        };
        calls::call(text, inputs, outputs)
    };
    debug_assert_eq!(Arc::strong_count(&owner), 1, "a tensor over XLA's memory outlives the call");
    result
}

/// Fills in the metadata if XLA asks for it, and says whether it did.
///
/// # Safety
/// `extension` is null or the first of a list of extensions.
unsafe fn tell_version(mut extension: *mut abi::Extension) -> Result<bool, Failure> {
    while let Some(found) = NonNull::new(extension) {
        // SAFETY: the caller guarantees a list of valid extensions. No reference to one is made,
        // because the next lines write through the pointer.
        let (size, kind) = unsafe { ((*found.as_ptr()).struct_size, (*found.as_ptr()).kind) };
        if size < sizes::EXTENSION {
            return Err(Failure::foreign("an extension is too short"));
        }
        if kind != abi::METADATA {
            // SAFETY: the size was checked.
            extension = unsafe { (*found.as_ptr()).next };
            continue;
        }
        if size < sizes::METADATA_EXTENSION {
            return Err(Failure::foreign("the metadata extension is too short"));
        }
        // SAFETY: this is a metadata extension of sufficient size. XLA waits for its values.
        unsafe {
            let metadata = (*found.as_ptr().cast::<abi::MetadataExtension>()).metadata;
            if metadata.is_null() || (*metadata).struct_size < sizes::METADATA {
                return Err(Failure::foreign("the metadata is too short"));
            }
            (*metadata).version = abi::ApiVersion {
                struct_size: sizes::API_VERSION,
                extension: ptr::null_mut(),
                major: abi::VERSION.0,
                minor: abi::VERSION.1,
            };
            (*metadata).traits = 0;
        }
        return Ok(true);
    }
    Ok(false)
}

/// Returns the attribute `text`, the only one.
///
/// # Safety
/// `attributes` is what XLA passed. The text lives as long as the call.
unsafe fn text_of<'a>(attributes: &abi::Attributes) -> Result<&'a str, Failure> {
    if attributes.struct_size < sizes::ATTRIBUTES {
        return Err(Failure::foreign("the struct of attributes is too short"));
    }
    let expected = || Failure::invalid("the call has no string attribute text");
    let size = attributes.size;
    // SAFETY: the header says that the lists have `size` items, that names are byte spans, and that
    // the item of a string is a byte span.
    unsafe {
        let kinds = list(attributes.kinds, size)?;
        let names = list(attributes.names, size)?;
        let items = list(attributes.items, size)?;
        for ((&kind, &name), &item) in kinds.iter().zip(names).zip(items) {
            if kind == abi::STRING && bytes_of(name)? == b"text" {
                let text = bytes_of(item.cast())?;
                return std::str::from_utf8(text).map_err(|_| expected());
            }
        }
    }
    Err(expected())
}

/// Returns the bytes of a span.
///
/// # Safety
/// `span` is null or points to a span of XLA, which lives as long as the call.
unsafe fn bytes_of<'a>(span: *const abi::Bytes) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller guarantees a span or null.
    let span = unsafe { span.as_ref() }.ok_or_else(|| Failure::foreign("a string is missing"))?;
    let len = i64::try_from(span.len).map_err(|_| Failure::foreign("a string is too long"))?;
    // SAFETY: the header says that the span has `len` bytes.
    unsafe { list(span.ptr.cast(), len) }
}

/// Makes an error of XLA.
///
/// # Safety
/// `frame` is a call frame of XLA.
unsafe fn to_error(frame: &CallFrame, failure: Failure) -> *mut abi::Error {
    // SAFETY: a frame has the functions of XLA, or null.
    let api = unsafe { frame.api.as_ref() };
    let create = api.filter(|api| api.struct_size >= sizes::API).and_then(|api| api.create_error);
    let Some(create) = create else {
        // There is no way to tell XLA, and a result that was not written must not be used.
        eprintln!("inlay.jax: {}", failure.message);
        std::process::abort();
    };
    let mut text = failure.message.into_bytes();
    text.retain(|&byte| byte != 0);
    let message = CString::new(text).unwrap_or_default();
    let mut arguments = abi::ErrorArguments {
        struct_size: sizes::ERROR_ARGUMENTS,
        extension: ptr::null_mut(),
        message: message.as_ptr(),
        code: failure.code,
    };
    // SAFETY: this is XLA's function. It copies the message.
    unsafe { create(&raw mut arguments) }
}
