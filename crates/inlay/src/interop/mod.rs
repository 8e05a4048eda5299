//! Memory that is shared with other libraries: tensors over foreign memory, and addresses of our
//! own. Conversions from and to the types of other crates, each with a feature of the crate's name.
#![expect(unsafe_code, reason = "foreign memory comes as raw pointers")]

#[cfg(any(feature = "safetensors", feature = "serde"))]
mod byte_order;
#[cfg(feature = "candle")]
mod candle;
pub mod dlpack;
mod lent;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "safetensors")]
pub mod safetensors;
#[cfg(feature = "serde")]
mod serde;

use std::any::Any;
use std::ptr::NonNull;

use inlay_core::{DType, Error, Layout, Result};

use crate::array::Array;
use crate::memory::Buffer;
use crate::{Device, Tensor};

impl Tensor {
    /// Makes a tensor over memory that belongs to `owner`, which is dropped with the last handle to
    /// the memory. `layout` is relative to `ptr`. Fails if it exceeds the `len` bytes.
    ///
    /// ```
    /// # use inlay::{DType, Layout, Tensor};
    /// # use std::ptr::NonNull;
    /// static BYTES: [u8; 4] = [1, 2, 3, 4];
    /// let ptr = NonNull::from(&BYTES).cast();
    /// let layout = Layout::contiguous("example", &[2, 2], 1)?;
    /// // SAFETY: the bytes are initialized, live as long as the program, and are not written.
    /// let x = unsafe { Tensor::from_foreign(ptr, 4, layout, DType::U8, false, ()) }?;
    /// assert_eq!(x.i((1, 0))?.item::<u8>()?, 3);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Safety
    /// The `len` bytes at `ptr` are initialized. They are valid for reads, and for writes if
    /// `writable`, for as long as `owner` lives. While an operation runs on the tensor, no other
    /// code should write them; if it does, the result is unspecified.
    #[inline]
    pub unsafe fn from_foreign(
        ptr: NonNull<u8>,
        len: usize,
        layout: Layout,
        dtype: DType,
        writable: bool,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        match layout.extent(dtype.size()) {
            Some(range) if range.is_empty() || range.end <= len => {}
            _ => return Err(Error::OutOfBounds { what: "a foreign array", len }),
        }
        // SAFETY: the caller of `from_foreign` guarantees that the bytes are valid while `owner`
        // lives.
        let buffer = unsafe { inlay_cpu::Buffer::foreign(ptr, len, writable, owner) };
        Ok(Tensor::from_array(Array { buffer: Buffer::Cpu(buffer), layout, dtype }))
    }

    /// Whether the memory was allocated by another library.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// assert!(!Tensor::from([1, 2]).is_foreign());
    /// ```
    pub fn is_foreign(&self) -> bool {
        self.array().buffer.is_foreign()
    }

    /// The address of the element at index 0, 0, …. It is valid as long as a handle to the memory
    /// exists. The user of the address must prevent data races. Null unless the tensor is on the
    /// CPU.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// let x = Tensor::from([1u8, 2, 3]);
    /// assert_eq!(x.i(2)?.data_ptr(), x.data_ptr().wrapping_add(2));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn data_ptr(&self) -> *mut u8 {
        let array = self.array();
        match self.device() {
            Device::Cpu => array.buffer.as_ptr().wrapping_add(array.layout.offset()),
            Device::Gpu => std::ptr::null_mut(),
        }
    }

    /// Fails unless the tensor is on the CPU, where its memory can be shared.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// Tensor::from([1, 2]).expect_cpu("my_function")?;
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Errors
    /// A tensor on another device.
    pub fn expect_cpu(&self, op: &'static str) -> Result<()> {
        match self.device() {
            Device::Cpu => Ok(()),
            other => Err(Error::NotOnCpu { op, got: other.name() }),
        }
    }
}
