//! Tensors exported to other libraries as managed tensors.

use std::ptr::NonNull;

use inlay_core::{DType, Error, Result};
use smallvec::{SmallVec, smallvec};

use super::abi::{CPU, DLDevice, DLTensor, IS_COPIED, READ_ONLY};
use super::managed::{Form, Managed};
use crate::{Device, Tensor};

/// The data of an exported tensor. The deleter frees all of it.
struct Exported<F> {
    managed: Option<F>,
    dims: Dims,
    tensor: Tensor,
}

/// Sizes and strides as DLPack has them: 64-bit numbers, and strides in elements.
///
/// ```
/// # use inlay::{Tensor, interop::dlpack::Dims};
/// let x = Tensor::from([[1, 2], [3, 4]]);
/// let dims = Dims::of(&x).expect("whole elements");
/// assert_eq!(dims.view(&x).data.cast(), x.data_ptr());
/// ```
#[derive(Debug)]
pub struct Dims {
    // A few are part of the struct, so that an export is one allocation.
    shape: SmallVec<[i64; 5]>,
    strides: SmallVec<[i64; 5]>,
}

/// Whether [`Tensor::to_dlpack`] shares memory or copies it.
///
/// ```
/// use inlay::Tensor;
/// use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
///
/// let x = Tensor::from([1, 2]);
/// let copied = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Always)?.into_tensor()?;
/// assert_ne!(copied.data_ptr(), x.data_ptr());
/// # Ok::<(), inlay::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copy {
    /// Share the memory, or fail.
    Never,
    /// Share the memory if possible, else copy it.
    IfNeeded,
    /// Always copy.
    Always,
}

impl Tensor {
    /// Returns a managed tensor over the same memory or over a copy, depending on `copy`.
    ///
    /// Fails if it may not copy and DLPack can't describe the tensor: an address or a stride is not
    /// a multiple of the element size, or the memory is read-only and the struct is that of 0.x.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let x = Tensor::from([1, 2]);
    /// let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
    /// assert_eq!(managed.into_tensor()?.data_ptr(), x.data_ptr());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn to_dlpack<F: Form>(&self, copy: Copy) -> Result<Managed<F>> {
        self.clone().into_dlpack(copy)
    }

    /// Like [`Tensor::to_dlpack`], for a tensor that is not needed any more.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let managed = Tensor::from([1, 2]).into_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
    /// assert_eq!(managed.into_tensor()?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn into_dlpack<F: Form>(self, copy: Copy) -> Result<Managed<F>> {
        self.expect_elements("to_dlpack")?;
        self.expect_cpu("to_dlpack")?;
        if copy == Copy::Always {
            return export_copy(&self);
        }
        let unsaid = !F::SAYS_READ_ONLY && !self.is_writable();
        let got = if unsaid {
            "read-only, which DLPack 0.x can't say"
        } else if let Some(dims) = Dims::of(&self) {
            return Ok(export(self, dims, 0));
        } else {
            "strided by parts of an element, which DLPack can't say"
        };
        // A read-only tensor is not copied without request: writes to the copy would be lost.
        if copy == Copy::IfNeeded && !unsaid {
            return export_copy(&self);
        }
        let expected = "memory that can be shared, or copy=True".to_owned();
        Err(Error::Argument { op: "to_dlpack", arg: "x", got: got.to_owned(), expected })
    }
}

impl Dims {
    /// The sizes and strides of a tensor, or `None` if DLPack can't describe it: its address or a
    /// stride is not a multiple of the element size, or it has no elements in the memory of the CPU.
    ///
    /// ```
    /// # use inlay::{Tensor, interop::dlpack::Dims};
    /// assert!(Dims::of(&Tensor::from([1, 2])).is_some());
    /// ```
    pub fn of(tensor: &Tensor) -> Option<Dims> {
        let layout = tensor.layout();
        let (shape, bytes) = (layout.shape(), layout.strides());
        let size = tensor.dtype().size() as isize;
        let mut odd = tensor.is_symbolic() || tensor.device() != Device::Cpu || !is_aligned(tensor);
        let mut strides: SmallVec<[i64; 5]> = smallvec![1; shape.len()];
        let (empty, mut next) = (shape.contains(&0), 1i64);
        for axis in (0..shape.len()).rev() {
            // An axis of one element has the stride that a contiguous one has. Other strides would
            // be as good, but PyTorch guesses its memory format from them.
            let used = shape[axis] > 1 && !empty;
            // The size is a power of two, so no division is needed.
            odd |= used && bytes[axis] & (size - 1) != 0;
            let stride = if used { (bytes[axis] >> size.trailing_zeros()) as i64 } else { next };
            strides[axis] = stride;
            next = stride.wrapping_mul(shape[axis].max(1) as i64);
        }
        let shape = shape.iter().map(|&dim| dim as i64).collect();
        (!odd).then_some(Dims { shape, strides })
    }

    /// The C struct of `tensor`, whose sizes and strides these are. It is valid for as long as both
    /// live. Its user must not write to them.
    ///
    /// ```
    /// # use inlay::{Tensor, interop::dlpack::Dims};
    /// let x = Tensor::from([1, 2]);
    /// let dims = Dims::of(&x).expect("whole elements");
    /// assert_eq!(dims.view(&x).ndim, 1);
    /// ```
    pub fn view(&self, tensor: &Tensor) -> DLTensor {
        let empty = tensor.numel() == 0;
        DLTensor {
            data: if empty { std::ptr::null_mut() } else { tensor.data_ptr().cast() },
            device: DLDevice { device_type: CPU, device_id: 0 },
            ndim: self.shape.len() as i32,
            dtype: tensor.dtype().into(),
            shape: self.shape.as_ptr().cast_mut(),
            strides: self.strides.as_ptr().cast_mut(),
            byte_offset: 0,
        }
    }
}

fn is_aligned(tensor: &Tensor) -> bool {
    // A complex element is two floats, and has the alignment of one.
    let size = match tensor.dtype() {
        DType::C64 => 4,
        DType::C128 => 8,
        dtype => dtype.size(),
    };
    tensor.numel() == 0 || (tensor.data_ptr() as usize).is_multiple_of(size)
}

/// Makes a managed tensor over a copy.
fn export_copy<F: Form>(tensor: &Tensor) -> Result<Managed<F>> {
    let copy = tensor.copy()?;
    let dims = Dims::of(&copy).ok_or(Error::OutOfBounds { what: "a copy", len: 0 })?;
    Ok(export(copy, dims, IS_COPIED))
}

/// Makes a managed tensor. `dims` are those of `tensor`.
fn export<F: Form>(tensor: Tensor, dims: Dims, flags: u64) -> Managed<F> {
    let exported = Box::into_raw(Box::new(Exported::<F> { managed: None, dims, tensor }));
    // SAFETY: `Box::into_raw` just returned the pointer, and there is no other reference to the
    // value.
    let Exported { managed, dims, tensor } = unsafe { &mut *exported };
    let read_only = if tensor.is_writable() { 0 } else { READ_ONLY };
    let view = dims.view(tensor);
    let managed = managed.insert(F::new(view, flags | read_only, exported.cast(), delete::<F>));
    // SAFETY: `F::new` fills in the struct as the DLPack header says. Its deleter, `delete`, frees
    // all of it and may be called from any thread.
    unsafe { Managed::from_raw(NonNull::from(managed)) }
}

/// Frees an exported tensor.
///
/// # Safety
/// `managed` was made by [`export`] and not deleted yet.
unsafe extern "C" fn delete<F: Form>(managed: *mut F) {
    // SAFETY: the caller guarantees that the context is the box that `export` leaked.
    drop(unsafe { Box::from_raw((*managed).context().cast::<Exported<F>>()) });
}
