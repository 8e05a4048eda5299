//! The structs of DLPack's C header, versions 0.x and 1.x, field by field.

use std::ffi::c_void;

/// The first version with the versioned form; 1.x only adds to it.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 0 };

/// Memory that the CPU reads.
pub const CPU: i32 = 1;
/// Pinned memory, which the CPU reads as well.
pub const CUDA_HOST: i32 = 3;

/// The flag of memory that must not be written.
pub const READ_ONLY: u64 = 1;
/// The flag of memory that was copied for this exchange, so that nobody else sees it.
pub const IS_COPIED: u64 = 2;

/// Where memory is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLDevice {
    /// The kind of device.
    pub device_type: i32,
    /// Which of its kind.
    pub device_id: i32,
}

/// What an element is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLDataType {
    /// Integer, float and so on.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Numbers in one element.
    pub lanes: u16,
}

/// A view of memory; owns nothing.
#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    /// The memory.
    pub data: *mut c_void,
    /// Where it is.
    pub device: DLDevice,
    /// How many dimensions.
    pub ndim: i32,
    /// What its elements are.
    pub dtype: DLDataType,
    /// Sizes.
    pub shape: *mut i64,
    /// Distances in elements; null for row-major without gaps.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// The form of 0.x.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The view.
    pub dl_tensor: DLTensor,
    /// The exporter's own.
    pub manager_ctx: *mut c_void,
    /// Gives the memory back; called once, by whoever took the struct.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// The version that a struct follows.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLPackVersion {
    /// Structs of another major version can't be read, but for their deleter.
    pub major: u32,
    /// Structs of a later minor version can.
    pub minor: u32,
}

/// The form of 1.x.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version that the struct follows.
    pub version: DLPackVersion,
    /// The exporter's own.
    pub manager_ctx: *mut c_void,
    /// Gives the memory back; called once, by whoever took the struct.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`READ_ONLY`], [`IS_COPIED`].
    pub flags: u64,
    /// The view.
    pub dl_tensor: DLTensor,
}
