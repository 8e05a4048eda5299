//! The structs of XLA's foreign function interface, as the header `xla/ffi/api/c_api.h` of jaxlib
//! defines them. Only what the handler uses is here.
//!
//! A struct begins with its size. Within a major version, fields are only added at the end, so a
//! struct that is large enough has the fields that are declared here.

use std::ffi::{c_char, c_int, c_void};

/// The version of the interface that the handler uses. It is the oldest one with these structs;
/// they are the same up to version 0.3, which is jaxlib 0.10.
pub(super) const VERSION: (c_int, c_int) = (0, 1);

/// `XLA_FFI_Extension_Base`.
#[repr(C)]
pub(super) struct Extension {
    pub(super) struct_size: usize,
    pub(super) kind: c_int,
    pub(super) next: *mut Extension,
}

/// The kind of [`MetadataExtension`].
pub(super) const METADATA: c_int = 1;

/// `XLA_FFI_Api_Version`.
#[repr(C)]
pub(super) struct ApiVersion {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) major: c_int,
    pub(super) minor: c_int,
}

/// `XLA_FFI_Metadata`. The header's next field, the type of a handler's state, is left as XLA has
/// set it: none.
#[repr(C)]
pub(super) struct Metadata {
    pub(super) struct_size: usize,
    pub(super) version: ApiVersion,
    pub(super) traits: u32,
}

/// `XLA_FFI_Metadata_Extension`: asks a handler for the version that it was written against.
#[repr(C)]
pub(super) struct MetadataExtension {
    pub(super) base: Extension,
    pub(super) metadata: *mut Metadata,
}

/// `XLA_FFI_Error`. Only XLA knows what is inside of it.
#[repr(C)]
pub(super) struct Error {
    _opaque: [u8; 0],
}

/// `XLA_FFI_Error_Code`, of which the handler uses these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) enum Code {
    InvalidArgument = 3,
    ResourceExhausted = 8,
    OutOfRange = 11,
    Internal = 13,
}

/// `XLA_FFI_Error_Create_Args`.
#[repr(C)]
pub(super) struct ErrorArguments {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) message: *const c_char,
    pub(super) code: Code,
}

/// `XLA_FFI_Api`, up to the one function that the handler calls.
#[repr(C)]
pub(super) struct Api {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) version: ApiVersion,
    pub(super) internal: *const c_void,
    pub(super) create_error: Option<unsafe extern "C" fn(*mut ErrorArguments) -> *mut Error>,
}

/// `XLA_FFI_Buffer`: an array in row-major order. Its dtype is an `XLA_FFI_DataType`.
#[repr(C)]
pub(super) struct Buffer {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) dtype: c_int,
    pub(super) data: *mut c_void,
    pub(super) rank: i64,
    pub(super) dims: *mut i64,
}

/// The only kind of argument and of result: `XLA_FFI_ArgType_BUFFER`, `XLA_FFI_RetType_BUFFER`.
pub(super) const BUFFER: c_int = 1;

/// `XLA_FFI_Args` and `XLA_FFI_Rets`, which have the same fields.
#[repr(C)]
pub(super) struct Buffers {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) size: i64,
    pub(super) kinds: *mut c_int,
    pub(super) items: *mut *mut c_void,
}

/// `XLA_FFI_ByteSpan`.
#[repr(C)]
pub(super) struct Bytes {
    pub(super) ptr: *const c_char,
    pub(super) len: usize,
}

/// `XLA_FFI_AttrType_STRING`, whose attribute is a [`Bytes`].
pub(super) const STRING: c_int = 4;

/// `XLA_FFI_Attrs`.
#[repr(C)]
pub(super) struct Attributes {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) size: i64,
    pub(super) kinds: *mut c_int,
    pub(super) names: *mut *mut Bytes,
    pub(super) items: *mut *mut c_void,
}

/// `XLA_FFI_ExecutionStage_EXECUTE`.
pub(super) const EXECUTE: c_int = 3;

/// `XLA_FFI_CallFrame`, without its last field, which is for asynchronous handlers.
#[repr(C)]
pub(super) struct CallFrame {
    pub(super) struct_size: usize,
    pub(super) extension: *mut Extension,
    pub(super) api: *const Api,
    pub(super) context: *mut c_void,
    pub(super) stage: c_int,
    pub(super) inputs: Buffers,
    pub(super) outputs: Buffers,
    pub(super) attributes: Attributes,
}

/// The header's `*_STRUCT_SIZE` of a struct: the end of its last field, without padding.
macro_rules! struct_size {
    ($struct:ty, $last:ident: $type:ty) => {
        std::mem::offset_of!($struct, $last) + size_of::<$type>()
    };
}

/// The sizes that this code needs at least.
pub(super) mod sizes {
    use super::{
        Api, ApiVersion, Attributes, Buffer, Buffers, CallFrame, Code, ErrorArguments, Extension,
        Metadata, MetadataExtension, c_int, c_void,
    };

    pub(in super::super) const EXTENSION: usize = struct_size!(Extension, next: *mut Extension);
    pub(in super::super) const API_VERSION: usize = struct_size!(ApiVersion, minor: c_int);
    pub(in super::super) const METADATA: usize = struct_size!(Metadata, traits: u32);
    pub(in super::super) const METADATA_EXTENSION: usize =
        struct_size!(MetadataExtension, metadata: *mut Metadata);
    pub(in super::super) const ERROR_ARGUMENTS: usize = struct_size!(ErrorArguments, code: Code);
    pub(in super::super) const API: usize = struct_size!(Api, create_error: *const c_void);
    pub(in super::super) const BUFFER: usize = struct_size!(Buffer, dims: *mut i64);
    pub(in super::super) const BUFFERS: usize = struct_size!(Buffers, items: *mut *mut c_void);
    pub(in super::super) const ATTRIBUTES: usize =
        struct_size!(Attributes, items: *mut *mut c_void);
    pub(in super::super) const CALL_FRAME: usize = struct_size!(CallFrame, attributes: Attributes);
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    // The expected numbers are those of a C compiler for the header, on a 64-bit machine.

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(sizes::EXTENSION, 24);
        assert_eq!(sizes::API_VERSION, 24);
        assert_eq!(sizes::METADATA, 36);
        assert_eq!(sizes::METADATA_EXTENSION, 32);
        assert_eq!(sizes::ERROR_ARGUMENTS, 28);
        assert_eq!(sizes::BUFFER, 48);
        assert_eq!(sizes::BUFFERS, 40);
        assert_eq!(sizes::ATTRIBUTES, 48);
        assert_eq!(sizes::CALL_FRAME, 168);
    }

    #[test]
    fn fields_are_where_the_header_has_them() {
        assert_eq!(offset_of!(Metadata, traits), 32);
        assert_eq!(offset_of!(Api, create_error), 48);
        assert_eq!(offset_of!(Buffer, data), 24);
        assert_eq!(offset_of!(Buffer, dims), 40);
        assert_eq!(offset_of!(Attributes, items), 40);
        assert_eq!(offset_of!(CallFrame, stage), 32);
        assert_eq!(offset_of!(CallFrame, inputs), 40);
        assert_eq!(offset_of!(CallFrame, outputs), 80);
        assert_eq!(offset_of!(CallFrame, attributes), 120);
    }
}
