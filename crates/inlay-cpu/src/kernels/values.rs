//! Copies between views and slices of Rust values or bytes.

use inlay_core::{DType, Error, Layout, Result};

use super::copy::{copy, copy_to};
use crate::memory::prefer_huge_pages;
use crate::view::Span;
use crate::{Dst, Element, Src, threads};

/// Writes `values` in row-major order to `dst`.
///
/// # Panics
/// When `dst` has another dtype or number of elements.
pub fn store<T: Element>(dst: Dst<'_>, values: &[T]) {
    assert_eq!(dst.dtype(), T::DTYPE, "one value an element");
    // SAFETY: a slice of values is a slice of their bytes. All element types are without padding.
    store_bytes(dst, unsafe {
        std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values))
    });
}

/// Writes elements, given by their bytes in row-major order, to `dst`.
///
/// # Panics
/// When `dst` has another number of bytes.
pub fn store_bytes(dst: Dst<'_>, bytes: &[u8]) {
    let dtype = dst.dtype();
    let Ok(layout) = Layout::contiguous("store", dst.layout().shape(), dtype.size()) else {
        unreachable!("the elements of a destination don't overlap, so they fit into memory")
    };
    assert_eq!(layout.numel() * dtype.size(), bytes.len(), "one value an element");
    let span = span(bytes.as_ptr() as usize, bytes.len());
    // SAFETY: the bytes are those of the contiguous elements, and are borrowed.
    copy(dst, unsafe { Src::new(bytes.as_ptr(), &layout, dtype, span) });
}

/// Returns all elements in row-major order.
///
/// # Panics
/// When the view's dtype is not that of `T`.
///
/// # Errors
/// No memory for the values.
pub fn load<T: Element>(src: Src<'_>) -> Result<Vec<T>> {
    const { assert!(size_of::<T>() == size_of::<T::Stored>(), "a value is stored as it is") };
    assert_eq!(src.dtype(), T::DTYPE, "elements of this type");
    // SAFETY: the elements have the dtype of `T`, and all of their bits are values.
    unsafe { load_as(src, 1) }
}

/// Returns the bytes of all elements in row-major order. The byte of a bool is 0 or 1.
///
/// # Errors
/// No memory for the bytes.
pub fn load_bytes(src: Src<'_>) -> Result<Vec<u8>> {
    // SAFETY: every byte is a `u8`.
    unsafe { load_as(src, src.dtype().size()) }
}

/// Returns the elements as a vector of `T`, with `per` values for each element.
///
/// # Safety
/// An element has the size of `per` values of `T`. Its bytes are such values, where the byte of a
/// bool is 0 or 1.
unsafe fn load_as<T>(src: Src<'_>, per: usize) -> Result<Vec<T>> {
    let (shape, size) = (src.layout().shape(), src.dtype().size());
    let len = src.layout().numel();
    let mut values = Vec::<T>::new();
    let memory = Error::OutOfMemory { bytes: len.saturating_mul(size) };
    values.try_reserve_exact(len.saturating_mul(per)).map_err(|_| memory)?;
    let (to, bytes) = (values.as_mut_ptr().cast::<u8>(), len * size);
    prefer_huge_pages(to, bytes);
    let layout = Layout::contiguous("load", shape, size)?;
    // SAFETY: the vector has room for the bytes of all elements, and nothing else accesses them.
    let target = unsafe { Dst::new(to, &layout, src.dtype(), span(to as usize, bytes)) };
    let target = target.into_target();
    copy_to(target, src);
    if src.dtype() == DType::Bool {
        threads::split(bytes, 1, |range| {
            // SAFETY: the copy has written all bytes, and threads have different ranges.
            let part = unsafe {
                std::slice::from_raw_parts_mut(target.origin().add(range.start), range.len())
            };
            part.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        });
    }
    // SAFETY: the copy has written all elements, which are values by the caller's promise.
    unsafe { values.set_len(len * per) };
    Ok(values)
}

fn span(start: usize, len: usize) -> Span {
    Span { low: start, high: start + len }
}
