//! The table of C functions through which libraries exchange tensors without calls of Python.

use std::ffi::{c_char, c_int, c_void};

use inlay_core::{Error, Result};

use super::abi::{DLManagedTensorVersioned, DLPackVersion, DLTensor, VERSION};
use super::export::Copy;
use super::import::shape_of;
use super::managed::Managed;
use crate::array::Array;
use crate::{Device, Tensor};

/// The version of the header that has the table as it is here.
pub const EXCHANGE_VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 3 };

/// The part of a table that is the same in all versions.
///
/// ```
/// use inlay::interop::dlpack::{DLPackExchangeAPIHeader, EXCHANGE_VERSION};
///
/// let header = DLPackExchangeAPIHeader { version: EXCHANGE_VERSION, prev_api: std::ptr::null() };
/// assert_eq!(header.version.major, 1);
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPIHeader {
    /// The functions of a table of another major version can't be used.
    pub version: DLPackVersion,
    /// The table of an older version, or null.
    pub prev_api: *const DLPackExchangeAPIHeader,
}

/// Takes the message of an error: a context, the name of a Python exception, and the text.
pub type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// The functions of a library. They return 0, or -1 with a Python exception set. An object of
/// Python is a `void*` here.
///
/// ```
/// use inlay::interop::dlpack::DLPackExchangeAPI;
///
/// fn shares_memory(table: &DLPackExchangeAPI) -> bool {
///     table.managed_tensor_from_py_object_no_sync.is_some()
/// }
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPI {
    /// The version.
    pub header: DLPackExchangeAPIHeader,
    /// Allocates a tensor of the dtype and shape of a prototype. It needs no GIL.
    pub managed_tensor_allocator: Option<
        unsafe extern "C" fn(
            *mut DLTensor,
            *mut *mut DLManagedTensorVersioned,
            *mut c_void,
            Option<SetError>,
        ) -> c_int,
    >,
    /// Exports a tensor of the library. The struct keeps the memory alive.
    pub managed_tensor_from_py_object_no_sync:
        Option<unsafe extern "C" fn(*mut c_void, *mut *mut DLManagedTensorVersioned) -> c_int>,
    /// Makes a tensor of the library over the memory of a struct, of which it becomes the owner.
    pub managed_tensor_to_py_object_no_sync:
        Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut c_void) -> c_int>,
    /// Describes a tensor of the library. The description is valid until other code runs. A library
    /// may leave this out.
    pub dltensor_from_py_object_no_sync:
        Option<unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> c_int>,
    /// Returns the stream that a device works on. The CPU has none.
    pub current_work_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

// SAFETY: the struct is constant, and its functions may be called from any thread.
unsafe impl Sync for DLPackExchangeAPI {}

impl DLPackExchangeAPI {
    /// Returns the newest table of a chain whose version can be used here, and that has all
    /// functions that a table must have.
    ///
    /// ```
    /// use inlay::interop::dlpack::DLPackExchangeAPI;
    ///
    /// // SAFETY: null is the empty chain.
    /// assert!(unsafe { DLPackExchangeAPI::find(std::ptr::null()) }.is_none());
    /// ```
    ///
    /// # Safety
    /// `newest` is null or points to a table that follows the DLPack header and is never freed, and
    /// so does each `prev_api` of its chain.
    pub unsafe fn find(newest: *const DLPackExchangeAPIHeader) -> Option<&'static Self> {
        let mut next = newest;
        // SAFETY: the caller guarantees the chain. The struct behind a header of this major version
        // is the one declared here, and later minor versions only add to its end.
        unsafe {
            while let Some(header) = next.as_ref() {
                if header.version.major == VERSION.major {
                    return next.cast::<Self>().as_ref().filter(|table| table.is_complete());
                }
                next = header.prev_api;
            }
        }
        None
    }

    fn is_complete(&self) -> bool {
        self.managed_tensor_from_py_object_no_sync.is_some()
            && self.managed_tensor_to_py_object_no_sync.is_some()
    }
}

/// Allocates a tensor of the dtype and shape of `prototype`, whose other fields are not used. The
/// values are unspecified.
///
/// ```
/// # use inlay::Tensor;
/// # use inlay::interop::dlpack::{Dims, allocate};
/// let x = Tensor::from([1, 2]);
/// let dims = Dims::of(&x).expect("whole elements");
/// // SAFETY: the sizes live as long as `dims`.
/// let managed = unsafe { allocate(&dims.view(&x)) }?;
/// assert_eq!(managed.into_tensor()?.shape(), [2]);
/// # Ok::<(), inlay::Error>(())
/// ```
///
/// # Errors
/// A device other than the CPU, a dtype that is not supported, a size that is negative, or not
/// enough memory.
///
/// # Safety
/// The shape of `prototype` is null or has `ndim` entries.
pub unsafe fn allocate(prototype: &DLTensor) -> Result<Managed<DLManagedTensorVersioned>> {
    const OP: &str = "managed_tensor_allocator";
    let refused = |arg, got, expected: &str| {
        Err(Error::Argument { op: OP, arg, got, expected: expected.to_owned() })
    };
    let device = prototype.device.device_type;
    if device != super::CPU {
        return refused("the device", super::describe_device(device), "the CPU");
    }
    let Some(dtype) = prototype.dtype.dtype() else {
        return refused("the dtype", prototype.dtype.describe(), "one of the fifteen");
    };
    let array = Array::on(Device::Cpu, OP, dtype, &shape_of(prototype)?)?;
    Tensor::from_array(array).into_dlpack(Copy::Never)
}
