//! Reads torch tensors through LibTorch's stable C interface. It tells more than DLPack does: the size
//! of a tensor's storage, which may be smaller than the tensor needs. It also takes fewer
//! instructions, because no reference to the tensor is made. (To make a result by `torch_from_blob`
//! takes as many as through DLPack.)
#![expect(unsafe_code, reason = "calls C functions by their addresses")]

use std::ffi::c_void;
use std::mem::{MaybeUninit, transmute_copy};

use inlay::interop::dlpack::{CPU, DLDevice, DLTensor};
use inlay::{DType, Tensor};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::dlpack::Purpose;

/// The address of a tensor in C++. That (`at::Tensor`) is a pointer to the tensor's implementation.
type Handle = *const *const c_void;

/// A C function that writes its answer to the address, and returns 0 if there is one.
struct Ask<T>(unsafe extern "C" fn(Handle, *mut T) -> i32);

/// The C functions that are asked about a tensor.
pub(super) struct LibTorch {
    layout: Ask<i32>,
    device: Ask<i32>,
    dtype: Ask<i32>,
    dim: Ask<i64>,
    sizes: Ask<*mut i64>,
    strides: Ask<*mut i64>,
    storage_size: Ask<i64>,
    storage_offset: Ask<i64>,
    data_to_read: Ask<*mut c_void>,
    /// Gives a tensor whose memory is shared until it is written memory of its own.
    data_to_write: Ask<*mut c_void>,
    /// The numbers of strided memory and of the CPU.
    strided: i32,
    cpu: i32,
    /// The dtype of each number.
    dtypes: [Option<DType>; 64],
    /// Whether the first object has its tensor where [`LibTorch::handle`] looks for it.
    is_known: PyOnceLock<bool>,
}

impl<T> Ask<T> {
    /// # Safety
    /// The handle is that of a live tensor.
    #[inline]
    unsafe fn about(&self, tensor: Handle) -> Option<T> {
        let mut answer = MaybeUninit::uninit();
        // SAFETY: the caller guarantees the handle. A function that returns 0 has written the answer.
        unsafe { ((self.0)(tensor, answer.as_mut_ptr()) == 0).then(|| answer.assume_init()) }
    }
}

/// LibTorch as an object of `ctypes`.
struct Library<'a, 'py>(&'a Bound<'py, PyAny>);

impl Library<'_, '_> {
    /// The C function of this name, as the pointer to a function `F`.
    ///
    /// # Safety
    /// The library has the function with this type.
    unsafe fn function<F: Copy>(&self, name: &str) -> PyResult<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        let ctypes = self.0.py().import("ctypes")?;
        let function = self.0.getattr(name)?;
        let pointer = ctypes.call_method1("cast", (function, ctypes.getattr("c_void_p")?))?;
        let address = pointer.getattr("value")?.extract::<usize>()?;
        // SAFETY: the caller guarantees the type, and the address has its size.
        Ok(unsafe { transmute_copy::<usize, F>(&address) })
    }

    /// The number that stands for a device, a layout or a dtype.
    ///
    /// # Safety
    /// The library has a function of this name without arguments, which returns a number.
    unsafe fn number(&self, name: &str) -> PyResult<i32> {
        // SAFETY: the caller guarantees it.
        Ok(unsafe { self.function::<unsafe extern "C" fn() -> i32>(name)?() })
    }
}

impl LibTorch {
    /// Finds the functions. Fails if the library has not all of them.
    pub(super) fn load(torch: &Bound<'_, PyModule>) -> PyResult<Self> {
        let bridge = torch.py().import("inlay._bridge")?;
        let library = bridge.call_method1("libtorch", (torch,))?;
        let library = Library(&library);
        let mut dtypes = [None; 64];
        // SAFETY: LibTorch's headers `aoti_torch/c/shim.h` and `stable/c/shim.h` declare these
        // functions with these types.
        unsafe {
            for dtype in DType::ALL {
                let number = library.number(&format!("aoti_torch_dtype_{dtype}"))?;
                if let Some(place) = usize::try_from(number).ok().and_then(|n| dtypes.get_mut(n)) {
                    *place = Some(dtype);
                }
            }
            Ok(LibTorch {
                layout: Ask(library.function("aoti_torch_get_layout")?),
                device: Ask(library.function("aoti_torch_get_device_type")?),
                dtype: Ask(library.function("aoti_torch_get_dtype")?),
                dim: Ask(library.function("aoti_torch_get_dim")?),
                sizes: Ask(library.function("aoti_torch_get_sizes")?),
                strides: Ask(library.function("aoti_torch_get_strides")?),
                storage_size: Ask(library.function("aoti_torch_get_storage_size")?),
                storage_offset: Ask(library.function("aoti_torch_get_storage_offset")?),
                data_to_read: Ask(library.function("torch_get_const_data_ptr")?),
                data_to_write: Ask(library.function("torch_get_mutable_data_ptr")?),
                strided: library.number("aoti_torch_layout_strided")?,
                cpu: library.number("aoti_torch_device_type_cpu")?,
                dtypes,
                is_known: PyOnceLock::new(),
            })
        }
    }

    /// Whether tensors can be borrowed, as far as is known.
    pub(super) fn may_borrow(&self, py: Python<'_>) -> bool {
        *self.is_known.get(py).unwrap_or(&true)
    }

    /// Returns a tensor over the memory of an object, or `None` if the object is anything but plain
    /// elements in memory, or if its storage ends before them. Nothing is allocated, and the result
    /// keeps nothing alive. Only the first call in a process runs Python code.
    ///
    /// # Safety
    /// The class of the object is `torch.Tensor` or derived from it. The result and all that share its
    /// memory are not used once the object may be gone, the GIL was released or Python code ran,
    /// which may give the object other memory.
    #[inline]
    pub(super) unsafe fn borrow(
        &self,
        object: &Bound<'_, PyAny>,
        purpose: Purpose,
    ) -> Option<Tensor> {
        // SAFETY: the caller guarantees the class. Objects of all classes that are derived from
        // `torch.Tensor` begin alike.
        unsafe {
            let tensor = self.handle(object)?;
            let (view, room) = self.ask(tensor, purpose)?;
            // The tensor is on the CPU and has strided memory. The storage holds its elements, as
            // `lend_within` checks. The caller guarantees the rest.
            view.lend_within(room, purpose == Purpose::Write).ok()
        }
    }

    /// Returns the address of the tensor in C++ inside of a Python object, or `None` if torch does not
    /// have it there. By torch's header `python_variable.h`, it follows what all objects begin with.
    /// (`torch_tensor_from_pyobject` would make another reference to the tensor, which takes an
    /// allocation and two calls into the interpreter.)
    ///
    /// # Safety
    /// The class of the object is `torch.Tensor` or derived from it.
    #[inline]
    unsafe fn handle(&self, object: &Bound<'_, PyAny>) -> Option<Handle> {
        // SAFETY: an object of the class has more fields than those that all objects have.
        let tensor = unsafe { object.as_ptr().add(1) }.cast::<*const c_void>();
        let is_known = self.is_known.get_or_init(object.py(), || {
            let implementation = object.getattr("_cdata").and_then(|found| found.extract());
            // SAFETY: as above. What is there has the size of a pointer at least.
            implementation.is_ok_and(|found: usize| found == unsafe { *tensor } as usize)
        });
        is_known.then_some(tensor)
    }

    /// Returns a description of a tensor, and the number of bytes from its first element to the end
    /// of its storage. Returns `None` if it is not on the CPU, has no strided memory, or has a dtype
    /// that Inlay has not.
    ///
    /// # Safety
    /// The handle is that of a live tensor.
    #[inline]
    unsafe fn ask(&self, tensor: Handle, purpose: Purpose) -> Option<(DLTensor, usize)> {
        // SAFETY: the caller guarantees the handle.
        unsafe {
            if self.layout.about(tensor)? != self.strided || self.device.about(tensor)? != self.cpu
            {
                return None;
            }
            // A wrapper of another tensor has none, and no data.
            let storage_size = self.storage_size.about(tensor)?;
            let number = usize::try_from(self.dtype.about(tensor)?).ok()?;
            let dtype = (*self.dtypes.get(number)?)?;
            let data = match purpose {
                Purpose::Read => &self.data_to_read,
                Purpose::Write => &self.data_to_write,
            };
            let before = self.storage_offset.about(tensor)?.checked_mul(dtype.size() as i64)?;
            let room = storage_size.checked_sub(before)?;
            let view = DLTensor {
                data: data.about(tensor)?,
                device: DLDevice { device_type: CPU, device_id: 0 },
                ndim: i32::try_from(self.dim.about(tensor)?).ok()?,
                dtype: dtype.into(),
                shape: self.sizes.about(tensor)?,
                strides: self.strides.about(tensor)?,
                byte_offset: 0,
            };
            Some((view, usize::try_from(room).ok()?))
        }
    }
}
