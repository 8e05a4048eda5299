//! Tensors over memory of another library for the time of one call. A tiny call would spend a tenth of
//! its time to allocate and free them, so each thread keeps some for the next call.

use std::cell::RefCell;
use std::ptr::NonNull;

use inlay_core::{DType, Layout};

use crate::Tensor;
use crate::array::Array;
use crate::memory::Buffer;

/// The number of tensors that a thread keeps. An operation has at most eight arguments.
const KEPT: usize = 8;

thread_local! {
    /// Tensors that nobody uses. Their memory may be gone.
    static IDLE: RefCell<Vec<Tensor>> = const { RefCell::new(Vec::new()) };
}

impl Tensor {
    /// Makes a tensor over memory that the caller keeps alive, for the time of one call. `layout` is
    /// relative to `ptr`. A call on the tensor fails if it exceeds the `len` bytes.
    ///
    /// ```
    /// # use inlay::{DType, Layout, Tensor};
    /// # use std::ptr::NonNull;
    /// let bytes = [1u8, 2, 3, 4];
    /// let layout = Layout::contiguous("example", &[4], 1)?;
    /// // SAFETY: the bytes live until the tensor is given back, and are not written.
    /// let x = unsafe { Tensor::lend(NonNull::from(&bytes).cast(), 4, layout, DType::U8, false) };
    /// let y = x.add(1)?;
    /// x.give_back();
    /// assert_eq!(y.to_vec::<u8>()?, [2, 3, 4, 5]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Safety
    /// As for [`Tensor::from_foreign`], until the tensor and all that share its memory are dropped
    /// or given back by [`Tensor::give_back`].
    #[inline(always)]
    pub unsafe fn lend(
        ptr: NonNull<u8>,
        len: usize,
        layout: Layout,
        dtype: DType,
        writable: bool,
    ) -> Self {
        // During the end of a thread there are none.
        let idle = IDLE.try_with(|idle| idle.borrow_mut().pop()).ok().flatten();
        if let Some(mut tensor) = idle
            && let Some((array, plain)) = tensor.sole_parts()
            && let Buffer::Cpu(buffer) = &mut array.buffer
            // SAFETY: the caller guarantees the memory.
            && unsafe { buffer.lend_again(ptr, len, writable) }
        {
            (array.layout, array.dtype, *plain) = (layout, dtype, false);
            return tensor;
        }
        // SAFETY: as above.
        let buffer = unsafe { inlay_cpu::Buffer::lent(ptr, len, writable) };
        Tensor::from_array(Array { buffer: Buffer::Cpu(buffer), layout, dtype })
    }

    /// Whether the memory was lent for the time of one call.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// assert!(!Tensor::from([1, 2]).is_lent());
    /// ```
    #[inline]
    pub fn is_lent(&self) -> bool {
        matches!(&self.array().buffer, Buffer::Cpu(buffer) if buffer.is_lent())
    }

    /// Drops a tensor. If its memory was lent, by [`Tensor::lend`] or
    /// [`DLTensor::lend`](super::dlpack::DLTensor::lend), and nothing else uses it, the thread keeps
    /// its allocations for the next one.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// Tensor::from([1, 2]).give_back();
    /// ```
    #[inline]
    pub fn give_back(mut self) {
        if self.sole_parts().is_some() && self.is_lent() {
            let _ = IDLE.try_with(|idle| {
                let mut idle = idle.borrow_mut();
                if idle.len() < KEPT {
                    idle.push(self);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lends two elements of a static array.
    fn lend(dtype: DType) -> Tensor {
        static ZEROS: [u64; 4] = [0; 4];
        let layout = Layout::contiguous("test", &[2], dtype.size()).expect("small");
        // SAFETY: the bytes are static, and are not written.
        unsafe { Tensor::lend(NonNull::from(&ZEROS).cast(), 32, layout, dtype, false) }
    }

    #[test]
    fn allocations_are_used_again() {
        let first = lend(DType::F32);
        let (address, buffer) = (first.address(), first.array().buffer.cpu().id());
        first.array().buffer.cpu().versions().count_write(true);
        first.give_back();
        let second = lend(DType::C128);
        assert_eq!((second.address(), second.array().buffer.cpu().id()), (address, buffer));
        assert_eq!((second.dtype(), second.numel()), (DType::C128, 2));
        assert_eq!(second.array().buffer.cpu().versions().recorded(), 0);
    }

    #[test]
    fn a_tensor_with_a_weak_handle_is_not_used_again() {
        let first = lend(DType::F32);
        let weak = first.downgrade();
        first.give_back();
        assert!(!weak.is(&lend(DType::F32)));
    }

    #[test]
    fn a_buffer_with_another_handle_is_not_used_again() {
        let first = lend(DType::F32);
        let other = first.array().buffer.clone();
        first.give_back();
        assert!(!lend(DType::F32).array().buffer.cpu().same_as(other.cpu()));
    }
}
