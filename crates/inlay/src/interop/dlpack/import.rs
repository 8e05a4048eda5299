//! Tensors over the managed tensors of other libraries.

use std::any::Any;
use std::ptr::NonNull;

use inlay_core::{DType, Error, Layout, Result, Shape, Strides, collect};

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
        self.into_tensor_with(|managed| managed)
    }

    /// Like [`Managed::into_tensor`]. `keep` wraps the owner of the memory, for deleters that need
    /// a lock when they are called.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let x = Tensor::from([1, 2]);
    /// let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
    /// let again = managed.into_tensor_with(|managed| Some(managed))?;
    /// assert_eq!(again.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn into_tensor_with<O: Any + Send + Sync>(
        self,
        keep: impl FnOnce(Self) -> O,
    ) -> Result<Tensor> {
        let version = self.form().version();
        if version.major != VERSION.major {
            let got = format!("{}.{}", version.major, version.minor);
            return Err(refused("the DLPack version", got, "1.x"));
        }
        let Place { ptr, len, layout, dtype } = place_of(self.form().tensor())?;
        let writable = !self.is_read_only();
        // SAFETY: `place_of` computed the range from the lowest to the highest element. The
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

impl DLTensor {
    /// Makes a tensor over the same memory, which the caller keeps alive. Fails for what
    /// [`Managed::into_tensor`] refuses. [`Tensor::give_back`] makes the next one cheaper.
    ///
    /// ```
    /// # use inlay::{DType, interop::dlpack::{CPU, DLDevice, DLTensor}};
    /// let (mut data, mut shape) = ([1.0f32, 2.0], [2]);
    /// let view = DLTensor {
    ///     data: data.as_mut_ptr().cast(),
    ///     device: DLDevice { device_type: CPU, device_id: 0 },
    ///     ndim: 1,
    ///     dtype: DType::F32.into(),
    ///     shape: shape.as_mut_ptr(),
    ///     strides: std::ptr::null_mut(),
    ///     byte_offset: 0,
    /// };
    /// // SAFETY: the struct describes the two elements, which live longer than the tensor.
    /// let x = unsafe { view.lend(false) }?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// x.give_back();
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Safety
    /// The struct follows the DLPack header. Its elements are valid for reads, and for writes if
    /// `writable`, until the tensor and all that share its memory are dropped or given back.
    #[inline]
    pub unsafe fn lend(&self, writable: bool) -> Result<Tensor> {
        let Place { ptr, len, layout, dtype } = place_of(self)?;
        // SAFETY: `place_of` computed the range from the lowest to the highest element. The caller
        // guarantees these bytes.
        Ok(unsafe { Tensor::lend(ptr, len, layout, dtype, writable) })
    }

    /// Like [`DLTensor::lend`], but also fails if the elements are not within the `room` bytes that
    /// follow the first one.
    ///
    /// ```
    /// # use inlay::{DType, interop::dlpack::{CPU, DLDevice, DLTensor}};
    /// let (mut data, mut shape) = ([1.0f32, 2.0], [3]);
    /// let view = DLTensor {
    ///     data: data.as_mut_ptr().cast(),
    ///     device: DLDevice { device_type: CPU, device_id: 0 },
    ///     ndim: 1,
    ///     dtype: DType::F32.into(),
    ///     shape: shape.as_mut_ptr(),
    ///     strides: std::ptr::null_mut(),
    ///     byte_offset: 0,
    /// };
    /// // SAFETY: the room is that of the two elements, which live longer than the tensor.
    /// let error = unsafe { view.lend_within(8, false) }.unwrap_err();
    /// assert_eq!(error.to_string(), "from_dlpack: the memory is 8 bytes, expected at least 12");
    /// ```
    ///
    /// # Safety
    /// As for [`DLTensor::lend`], but only those elements that are within the room need to be valid.
    #[inline]
    pub unsafe fn lend_within(&self, room: usize, writable: bool) -> Result<Tensor> {
        let Place { ptr, len, layout, dtype } = place_of(self)?;
        // The first element is not the lowest one if a stride is negative.
        if len > room || layout.offset() != 0 {
            let expected = format!("at least {len}");
            return Err(refused("the memory", format!("{room} bytes"), &expected));
        }
        // SAFETY: as in `lend`. All elements are within the room.
        Ok(unsafe { Tensor::lend(ptr, len, layout, dtype, writable) })
    }
}

/// The elements of a [`DLTensor`] in memory.
struct Place {
    /// The lowest byte.
    ptr: NonNull<u8>,
    /// The number of bytes up to the highest one.
    len: usize,
    /// Relative to the lowest byte.
    layout: Layout,
    dtype: DType,
}

/// Returns the place of the elements. Fails if they are not on the CPU, or of another dtype.
#[inline]
fn place_of(view: &DLTensor) -> Result<Place> {
    let device = view.device.device_type;
    if device != CPU && device != CUDA_HOST {
        return Err(refused("the device", describe_device(device), "the CPU"));
    }
    let dtype = view.dtype.dtype();
    let dtype =
        dtype.ok_or_else(|| refused("the dtype", view.dtype.describe(), "one of the fifteen"))?;
    let (layout, low, len) = layout_of(view, dtype)?;
    let base = view.data.cast::<u8>().wrapping_add(view.byte_offset as usize);
    let ptr = match NonNull::new(base.wrapping_offset(low)) {
        Some(ptr) if len > 0 && !view.data.is_null() => ptr,
        // The address is not used, but it must be aligned.
        _ if len == 0 => NonNull::<u128>::dangling().cast(),
        _ => return Err(refused("the data pointer", "null".to_owned(), "memory")),
    };
    Ok(Place { ptr, len, layout, dtype })
}

/// Returns the sizes as unsigned numbers.
#[inline]
pub(super) fn shape_of(view: &DLTensor) -> Result<Shape> {
    let rank = usize::try_from(view.ndim)
        .map_err(|_| refused("ndim", view.ndim.to_string(), "not negative"))?;
    let sizes =
        list(view.shape, rank).ok_or_else(|| refused("shape", "null".to_owned(), "sizes"))?;
    if sizes.iter().any(|&size| usize::try_from(size).is_err()) {
        return Err(refused("shape", format!("{sizes:?}"), "not negative"));
    }
    Ok(collect(rank, 0, |k| sizes[k] as usize))
}

/// Returns the `rank` entries of a shape or strides, or `None` for a null pointer.
#[inline]
fn list<'a>(ptr: *const i64, rank: usize) -> Option<&'a [i64]> {
    if rank == 0 {
        return Some(&[]);
    }
    // SAFETY: the DLPack header, which the maker of a `Managed` and the caller of `lend`
    // guarantee is followed, says that shape and strides have `ndim` entries if they are not null.
    (!ptr.is_null()).then(|| unsafe { std::slice::from_raw_parts(ptr, rank) })
}

/// Returns the layout relative to its lowest byte, the offset of that byte from the first element,
/// and the number of bytes up to the highest one.
#[inline]
fn layout_of(view: &DLTensor, dtype: DType) -> Result<(Layout, isize, usize)> {
    let shape = shape_of(view)?;
    let size = dtype.size() as isize;
    let Some(strides) = list(view.strides, shape.len()).filter(|_| !shape.contains(&0)) else {
        let layout = Layout::contiguous("from_dlpack", &shape, dtype.size())?;
        let len = layout.numel() * dtype.size();
        return Ok((layout, 0, len));
    };
    let wrong = || refused("strides", format!("{strides:?}"), "within the address space");
    // The stride of a dimension of one element is not used and may have any value.
    let in_bytes = |k: usize| match shape[k] {
        1 => Some(0),
        _ => isize::try_from(strides[k]).ok()?.checked_mul(size),
    };
    if (0..shape.len()).any(|k| in_bytes(k).is_none()) {
        return Err(wrong());
    }
    let bytes: Strides = collect(shape.len(), 0, |k| in_bytes(k).unwrap_or(0));
    Layout::around(&shape, &bytes, dtype.size()).ok_or_else(wrong)
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
        18 => "Trainium",
        other => return format!("DLPack device type {other}"),
    };
    name.to_owned()
}
