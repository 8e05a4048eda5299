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
    /// Makes a tensor over memory that the caller keeps alive. The layout stays inside of it.
    ///
    /// # Safety
    /// As for [`Tensor::from_foreign`], until the tensor and all that share its memory are dropped
    /// or given back by [`Tensor::give_back`].
    #[inline]
    pub(super) unsafe fn lend(
        ptr: NonNull<u8>,
        len: usize,
        layout: Layout,
        dtype: DType,
        writable: bool,
    ) -> Self {
        // During the end of a thread there are none.
        let idle = IDLE.try_with(|idle| idle.borrow_mut().pop()).ok().flatten();
        if let Some(mut tensor) = idle
            && let Some(array) = tensor.sole_array()
            && let Buffer::Cpu(buffer) = &mut array.buffer
            // SAFETY: the caller guarantees the memory.
            && unsafe { buffer.lend_again(ptr, len, writable) }
        {
            (array.layout, array.dtype) = (layout, dtype);
            return tensor;
        }
        // SAFETY: as above.
        let buffer = unsafe { inlay_cpu::Buffer::lent(ptr, len, writable) };
        Tensor::from_array(Array { buffer: Buffer::Cpu(buffer), layout, dtype })
    }

    /// Drops a tensor. If it was made by [`DLTensor::lend`](super::dlpack::DLTensor::lend) and
    /// nothing else uses it, the thread keeps its allocations for the next one.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// Tensor::from([1, 2]).give_back();
    /// ```
    #[inline]
    pub fn give_back(mut self) {
        let is_lent =
            |array: &mut Array| matches!(&array.buffer, Buffer::Cpu(buffer) if buffer.is_lent());
        if self.sole_array().is_some_and(is_lent) {
            let _ = IDLE.try_with(|idle| {
                let mut idle = idle.borrow_mut();
                if idle.len() < KEPT {
                    idle.push(self);
                }
            });
        }
    }
}
