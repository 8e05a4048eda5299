//! Managed tensors as values that call their deleter once, when they are dropped.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::abi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, IS_COPIED, READ_ONLY,
    VERSION,
};

/// The two structs of a managed tensor. The trait is sealed.
pub trait Form: sealed::Form {}

impl Form for DLManagedTensor {}
impl Form for DLManagedTensorVersioned {}

pub(super) mod sealed {
    use super::{DLPackVersion, DLTensor};
    use std::ffi::c_void;

    pub trait Form: Sized + 'static {
        /// Whether the struct has a flag for read-only memory.
        const SAYS_READ_ONLY: bool;

        fn new(
            tensor: DLTensor,
            flags: u64,
            context: *mut c_void,
            deleter: unsafe extern "C" fn(*mut Self),
        ) -> Self;
        fn tensor(&self) -> &DLTensor;
        fn context(&self) -> *mut c_void;
        fn flags(&self) -> u64;
        fn version(&self) -> DLPackVersion;
        fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
    }
}

impl sealed::Form for DLManagedTensor {
    const SAYS_READ_ONLY: bool = false;

    fn new(
        dl_tensor: DLTensor,
        _flags: u64,
        manager_ctx: *mut std::ffi::c_void,
        deleter: unsafe extern "C" fn(*mut Self),
    ) -> Self {
        DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(deleter) }
    }

    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn context(&self) -> *mut std::ffi::c_void {
        self.manager_ctx
    }

    fn flags(&self) -> u64 {
        0
    }

    fn version(&self) -> DLPackVersion {
        VERSION
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

impl sealed::Form for DLManagedTensorVersioned {
    const SAYS_READ_ONLY: bool = true;

    fn new(
        dl_tensor: DLTensor,
        flags: u64,
        manager_ctx: *mut std::ffi::c_void,
        deleter: unsafe extern "C" fn(*mut Self),
    ) -> Self {
        DLManagedTensorVersioned {
            version: VERSION,
            manager_ctx,
            deleter: Some(deleter),
            flags,
            dl_tensor,
        }
    }

    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn context(&self) -> *mut std::ffi::c_void {
        self.manager_ctx
    }

    fn flags(&self) -> u64 {
        self.flags
    }

    fn version(&self) -> DLPackVersion {
        self.version
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

/// A managed tensor that we own. Dropping it calls its deleter.
///
/// ```
/// use inlay::Tensor;
/// use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
///
/// let x = Tensor::from([1, 2]);
/// let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
/// // Dropping it calls its deleter.
/// drop(managed);
/// # Ok::<(), inlay::Error>(())
/// ```
pub struct Managed<F: Form>(NonNull<F>);

// SAFETY: the struct is only read, and the caller of `from_raw` guarantees that its deleter may be
// called from any thread.
unsafe impl<F: Form> Send for Managed<F> {}
// SAFETY: as above; nothing is written through a shared reference.
unsafe impl<F: Form> Sync for Managed<F> {}

impl<F: Form> Managed<F> {
    /// Takes ownership of a managed tensor from its exporter.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let x = Tensor::from([1, 2]);
    /// let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
    /// let raw = managed.into_raw();
    /// // SAFETY: the pointer was just given up, so no other code deletes it.
    /// let managed = unsafe { inlay::interop::dlpack::Managed::from_raw(raw) };
    /// assert_eq!(managed.into_tensor()?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), inlay::Error>(())
    /// ```
    ///
    /// # Safety
    /// `ptr` points to a managed tensor that follows the DLPack header. No other code deletes it,
    /// and its deleter may be called from any thread.
    pub unsafe fn from_raw(ptr: NonNull<F>) -> Self {
        Managed(ptr)
    }

    /// Gives up ownership. The caller must make sure that the deleter is called.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let x = Tensor::from([1, 2]);
    /// let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
    /// let raw = managed.into_raw();
    /// // SAFETY: the pointer was just given up, so no other code deletes it.
    /// let managed = unsafe { inlay::interop::dlpack::Managed::from_raw(raw) };
    /// assert!(!managed.is_read_only());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn into_raw(self) -> NonNull<F> {
        ManuallyDrop::new(self).0
    }

    pub(super) fn form(&self) -> &F {
        // SAFETY: the caller of `from_raw` guarantees that the pointer is valid until the deleter
        // is called, which happens only in `drop`.
        unsafe { self.0.as_ref() }
    }

    /// Whether the memory is read-only.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let x = Tensor::from([1, 2]);
    /// let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never)?;
    /// assert!(!managed.is_read_only());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn is_read_only(&self) -> bool {
        self.form().flags() & READ_ONLY != 0
    }

    /// Whether the exporter has copied the elements, so that writes do not reach it.
    ///
    /// ```
    /// # use inlay::Tensor;
    /// # use inlay::interop::dlpack::{Copy, DLManagedTensorVersioned};
    /// let x = Tensor::from([1, 2]);
    /// assert!(x.to_dlpack::<DLManagedTensorVersioned>(Copy::Always)?.is_copied());
    /// # Ok::<(), inlay::Error>(())
    /// ```
    pub fn is_copied(&self) -> bool {
        self.form().flags() & IS_COPIED != 0
    }
}

impl<F: Form> Drop for Managed<F> {
    fn drop(&mut self) {
        if let Some(deleter) = self.form().deleter() {
            // SAFETY: we own the managed tensor, so no other code calls its deleter, and it is not
            // used after this.
            unsafe { deleter(self.0.as_ptr()) };
        }
    }
}

impl<F: Form> fmt::Debug for Managed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Managed").field(self.form().tensor()).finish()
    }
}
