//! Tensors exported to other libraries as managed tensors.

use std::ptr::NonNull;

use inlay_core::{DType, Error, Layout, Result};

use super::abi::{CPU, DLDevice, DLTensor, IS_COPIED, READ_ONLY};
use super::managed::{Form, Managed};
use crate::Tensor;

/// The data of an exported tensor. The deleter frees all of it.
struct Exported<F> {
    managed: Option<F>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    tensor: Tensor,
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
        self.expect_elements("to_dlpack")?;
        self.expect_cpu("to_dlpack")?;
        let obstacle = || {
            let unsaid = !F::SAYS_READ_ONLY && !self.is_writable();
            let read_only = unsaid.then_some("read-only, which DLPack 0.x can't say");
            read_only.or((strides(self.layout(), self.dtype()).is_none() || !is_aligned(self))
                .then_some("strided by parts of an element, which DLPack can't say"))
        };
        match (copy, obstacle()) {
            (Copy::Never | Copy::IfNeeded, None) => Ok(export(self.clone(), 0)),
            (Copy::Always, _) => Ok(export(self.copy()?, IS_COPIED)),
            // A read-only tensor is not copied without request: writes to the copy would be lost.
            (Copy::IfNeeded, Some(_)) if F::SAYS_READ_ONLY || self.is_writable() => {
                Ok(export(self.copy()?, IS_COPIED))
            }
            (_, Some(got)) => Err(Error::Argument {
                op: "to_dlpack",
                arg: "x",
                got: got.to_owned(),
                expected: "memory that can be shared, or copy=True".to_owned(),
            }),
        }
    }
}

/// Returns the strides in elements, or `None` if a stride is not a multiple of the element size.
fn strides(layout: &Layout, dtype: DType) -> Option<Vec<i64>> {
    let size = dtype.size() as isize;
    let dims = layout.shape().iter().zip(layout.strides());
    dims.map(|(&dim, &stride)| match dim {
        // The stride of an axis of at most one element is not used.
        0 | 1 => Some(1),
        _ => (stride % size == 0).then_some((stride / size) as i64),
    })
    .collect()
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

/// Makes a managed tensor. The strides of `tensor` must be multiples of the element size.
fn export<F: Form>(tensor: Tensor, flags: u64) -> Managed<F> {
    let exported = Box::new(Exported::<F> {
        managed: None,
        shape: tensor.shape().iter().map(|&dim| dim as i64).collect(),
        strides: strides(tensor.layout(), tensor.dtype()).unwrap_or_default(),
        tensor,
    });
    let exported = Box::into_raw(exported);
    // SAFETY: `Box::into_raw` just returned the pointer, and there is no other reference to the
    // value.
    let Exported { managed, shape, strides, tensor } = unsafe { &mut *exported };
    let data = if tensor.numel() == 0 { std::ptr::null_mut() } else { tensor.data_ptr().cast() };
    let read_only = if tensor.is_writable() { 0 } else { READ_ONLY };
    let view = DLTensor {
        data,
        device: DLDevice { device_type: CPU, device_id: 0 },
        ndim: shape.len() as i32,
        dtype: tensor.dtype().into(),
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
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
