//! Buffers of XLA as tensors over their memory.
#![expect(unsafe_code, reason = "XLA passes arrays as raw pointers")]

use std::ffi::c_int;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use inlay::{DType, Layout, Tensor};
use smallvec::SmallVec;

use super::abi::{self, sizes};
use super::handler::Failure;

/// Most calls have at most this many inputs.
pub(super) type Tensors = SmallVec<[Tensor; 8]>;

/// The dtype of an `XLA_FFI_DataType`, or `None` if Inlay does not have it.
fn dtype_of(code: c_int) -> Option<DType> {
    Some(match code {
        1 => DType::Bool,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::U8,
        7 => DType::U16,
        8 => DType::U32,
        9 => DType::U64,
        10 => DType::F16,
        11 => DType::F32,
        12 => DType::F64,
        15 => DType::C64,
        16 => DType::BF16,
        18 => DType::C128,
        _ => return None,
    })
}

/// Returns tensors over all buffers. `owner` is held by each of them.
///
/// # Safety
/// `buffers` is what XLA passed, and its arrays are valid while tensors of them exist. If
/// `writable`, nothing else uses them.
pub(super) unsafe fn tensors_of(
    buffers: &abi::Buffers,
    writable: bool,
    owner: &Arc<()>,
) -> Result<Tensors, Failure> {
    if buffers.struct_size < sizes::BUFFERS {
        return Err(Failure::foreign("the struct of buffers is too short"));
    }
    // SAFETY: the header says that both lists have `size` items.
    let (kinds, items) =
        unsafe { (list(buffers.kinds, buffers.size)?, list(buffers.items, buffers.size)?) };
    let all = kinds.iter().zip(items).map(|(&kind, &item)| {
        if kind != abi::BUFFER || item.is_null() {
            return Err(Failure::foreign("an argument is not a buffer"));
        }
        // SAFETY: by its kind, this is a buffer.
        let buffer = unsafe { &*item.cast::<abi::Buffer>() };
        // SAFETY: the caller guarantees the same of each buffer.
        unsafe { tensor_of(buffer, writable, owner) }
    });
    all.collect()
}

/// Returns a tensor over one buffer.
///
/// # Safety
/// As for [`tensors_of`].
unsafe fn tensor_of(
    buffer: &abi::Buffer,
    writable: bool,
    owner: &Arc<()>,
) -> Result<Tensor, Failure> {
    if buffer.struct_size < sizes::BUFFER {
        return Err(Failure::foreign("the struct of a buffer is too short"));
    }
    let dtype = dtype_of(buffer.dtype).ok_or_else(|| {
        Failure::invalid(format!(
            "a buffer has XLA's dtype {}, expected one of the fifteen",
            buffer.dtype
        ))
    })?;
    // SAFETY: the header says that `dims` has `rank` items.
    let dims = unsafe { list(buffer.dims, buffer.rank)? };
    let sizes: Option<SmallVec<[usize; 6]>> =
        dims.iter().map(|&size| usize::try_from(size).ok()).collect();
    let sizes = sizes.ok_or_else(|| Failure::foreign("a size is negative"))?;
    let layout = Layout::contiguous("inlay.jax", &sizes, dtype.size())?;
    let len = layout.numel() * dtype.size();
    let ptr = match NonNull::new(buffer.data.cast::<u8>()) {
        Some(ptr) => ptr,
        // The address is not used, but it must be aligned.
        None if len == 0 => NonNull::<u128>::dangling().cast(),
        None => return Err(Failure::foreign("a buffer has no memory")),
    };
    // SAFETY: XLA's buffers are dense and in row-major order, because the lowering asks for that
    // layout, so they have `len` bytes. They are valid as long as the caller guarantees. The memory
    // was allocated outside of Rust, so it counts as initialized. Bools are 0 or 1 in XLA, too.
    Ok(unsafe { Tensor::from_foreign(ptr, len, layout, dtype, writable, Arc::clone(owner)) }?)
}

/// Returns a list of XLA. A list without items may be null.
///
/// # Safety
/// A list that is not null has `size` items, which live as long as the call.
pub(super) unsafe fn list<'a, T>(items: *const T, size: i64) -> Result<&'a [T], Failure> {
    match usize::try_from(size) {
        Ok(0) => Ok(&[]),
        // SAFETY: the caller guarantees the number of items.
        Ok(size) if !items.is_null() => Ok(unsafe { slice::from_raw_parts(items, size) }),
        _ => Err(Failure::foreign("a list has no items")),
    }
}
