//! The structs of the DLPack C header, versions 0.x and 1.x.

use std::ffi::c_void;

/// The first version with the versioned struct. Later 1.x versions only add to it.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 0 };

/// CPU memory.
pub const CPU: i32 = 1;
/// Pinned host memory, which the CPU can read.
pub const CUDA_HOST: i32 = 3;

/// The flag for read-only memory.
pub const READ_ONLY: u64 = 1;
/// The flag for memory that was copied for this exchange and is not shared.
pub const IS_COPIED: u64 = 2;

/// The device of the memory.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLDevice {
    /// The kind of device.
    pub device_type: i32,
    /// The number of the device among those of its kind.
    pub device_id: i32,
}

/// The element type.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLDataType {
    /// The kind of number: integer, float and so on.
    pub code: u8,
    /// The number of bits per lane.
    pub bits: u8,
    /// The number of lanes per element.
    pub lanes: u16,
}

/// A view of memory that it does not own.
#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    /// The memory.
    pub data: *mut c_void,
    /// The device of the memory.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The element type.
    pub dtype: DLDataType,
    /// The sizes.
    pub shape: *mut i64,
    /// Strides in elements; null for contiguous row-major memory.
    pub strides: *mut i64,
    /// The number of bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// The struct of 0.x.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The view.
    pub dl_tensor: DLTensor,
    /// Data of the exporter.
    pub manager_ctx: *mut c_void,
    /// Frees the struct and the memory. The consumer calls it once.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// The version of a struct.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLPackVersion {
    /// Only the deleter of a struct of another major version can be used.
    pub major: u32,
    /// A struct of a later minor version can be read.
    pub minor: u32,
}

/// The struct of 1.x.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of this struct.
    pub version: DLPackVersion,
    /// Data of the exporter.
    pub manager_ctx: *mut c_void,
    /// Frees the struct and the memory. The consumer calls it once.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// The flags [`READ_ONLY`] and [`IS_COPIED`].
    pub flags: u64,
    /// The view.
    pub dl_tensor: DLTensor,
}
