//! Tensors over the managed tensors of other libraries.

use std::any::Any;
use std::ptr::NonNull;

use inlay_core::{DType, Error, Layout, Result, Shape, Strides};

use super::abi::{CPU, CUDA_HOST, DLTensor, VERSION};
use super::managed::{Form, Managed};
use crate::Tensor;

impl<F: Form> Managed<F> {
    /// Makes a tensor over the same memory. The deleter is called when its last handle is dropped.
    ///
    /// Fails, and calls the deleter, if the memory is not on the CPU or the element type is not
    /// supported.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let x = Tensor::from([1, 2]);
    /// let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
    /// assert_eq!(managed.into_tensor()?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn into_tensor(self) -> Result<Tensor> {
        self.into_tensor_with(|managed| Box::new(managed))
    }

    /// Like [`Managed::into_tensor`]. `keep` wraps the owner of the memory, for deleters that need
    /// a lock when they are called.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let x = Tensor::from([1, 2]);
    /// let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
    /// let again = managed.into_tensor_with(|managed| Box::new(managed))?;
    /// assert_eq!(again.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn into_tensor_with(
        self,
        keep: impl FnOnce(Self) -> Box<dyn Any + Send + Sync>,
    ) -> Result<Tensor> {
        let version = self.form().version();
        if version.major != VERSION.major {
            let got = format!("{}.{}", version.major, version.minor);
            return Err(refused("the DLPack version", got, "1.x"));
        }
        let view = self.form().tensor();
        let device = view.device;
        if ![CPU, CUDA_HOST].contains(&device.device_type) {
            return Err(refused("the device", describe_device(device.device_type), "the CPU"));
        }
        let dtype = view.dtype.dtype();
        let dtype = dtype
            .ok_or_else(|| refused("the dtype", view.dtype.describe(), "one of the fifteen"))?;
        let (layout, low, len) = layout_of(view, dtype)?;
        let base = view.data.cast::<u8>().wrapping_add(view.byte_offset as usize);
        let ptr = match NonNull::new(base.wrapping_offset(low)) {
            Some(ptr) if len > 0 && !view.data.is_null() => ptr,
            // The address is not used, but it must be aligned.
            _ if len == 0 => NonNull::<u128>::dangling().cast(),
            _ => return Err(refused("the data pointer", "null".to_owned(), "memory")),
        };
        let writable = !self.is_read_only();
        // SAFETY: `layout_of` computed the range from the lowest to the highest element. The
        // exporter guarantees these bytes until the managed tensor is deleted, and the owner holds
        // it.
        unsafe { Tensor::from_foreign(ptr, len, layout, dtype, writable, keep(self)) }
    }

    /// The dtype of the elements, if it is supported.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let x = Tensor::from([1, 2]);
    /// let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
    /// assert_eq!(managed.dtype(), Some(x.dtype()));
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn dtype(&self) -> Option<DType> {
        self.form().tensor().dtype.dtype()
    }
}

/// Returns the layout relative to its lowest byte, the offset of that byte from the first element,
/// and the number of bytes up to the highest one.
fn layout_of(view: &DLTensor, dtype: DType) -> Result<(Layout, isize, usize)> {
    let rank = usize::try_from(view.ndim)
        .map_err(|_| refused("ndim", view.ndim.to_string(), "not negative"))?;
    let list = |ptr: *const i64| -> Option<&[i64]> {
        if rank == 0 {
            return Some(&[]);
        }
        // SAFETY: the DLPack header, which the caller of `from_raw` guarantees is followed, says
        // that shape and strides have `ndim` entries if they are not null.
        (!ptr.is_null()).then(|| unsafe { std::slice::from_raw_parts(ptr, rank) })
    };
    let sizes = list(view.shape).ok_or_else(|| refused("shape", "null".to_owned(), "sizes"))?;
    let shape: Option<Shape> = sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
    let shape = shape.ok_or_else(|| refused("shape", format!("{sizes:?}"), "not negative"))?;

    let contiguous = Layout::contiguous("from_dlpack", &shape, dtype.size());
    let Some(strides) = list(view.strides).filter(|_| !shape.contains(&0)) else {
        let layout = contiguous?;
        let len = layout.numel() * dtype.size();
        return Ok((layout, 0, len));
    };
    let far = || refused("strides", format!("{strides:?}"), "within the address space");
    let (mut low, mut high) = (0isize, dtype.size() as isize);
    let mut bytes = Strides::with_capacity(rank);
    for (&dim, &stride) in shape.iter().zip(strides) {
        // The stride of a dimension of one element is not used and may have any value.
        let stride = if dim == 1 { 0 } else { stride };
        let stride = isize::try_from(stride).ok();
        let stride = stride.and_then(|s| s.checked_mul(dtype.size() as isize)).ok_or_else(far)?;
        let span = isize::try_from(dim - 1).ok().and_then(|n| n.checked_mul(stride));
        let span = span.ok_or_else(far)?;
        let end = if span < 0 { &mut low } else { &mut high };
        *end = end.checked_add(span).ok_or_else(far)?;
        bytes.push(stride);
    }
    let len = high.checked_sub(low).ok_or_else(far)?;
    Ok((Layout::strided(shape, bytes, low.unsigned_abs()), low, len.unsigned_abs()))
}

fn refused(arg: &'static str, got: String, expected: &str) -> Error {
    Error::Argument { op: "from_dlpack", arg, got, expected: expected.to_owned() }
}

/// Returns the name of a kind of device for error messages.
///
/// ```
/// assert_eq!(inlay::interop::dlpack::describe_device(2), "CUDA");
/// ```
pub fn describe_device(device_type: i32) -> String {
    let name = match device_type {
        CPU => "the CPU",
        2 => "CUDA",
        CUDA_HOST => "CUDA's host memory",
        4 => "OpenCL",
        7 => "Vulkan",
        8 => "Metal",
        9 => "VPI",
        10 => "ROCm",
        11 => "ROCm's host memory",
        13 => "CUDA's managed memory",
        14 => "oneAPI",
        15 => "WebGPU",
        16 => "Hexagon",
        17 => "MAIA",
        other => return format!("DLPack device type {other}"),
    };
    name.to_owned()
}
