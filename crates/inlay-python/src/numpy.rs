//! Conversion between NumPy arrays and tensors over the same memory. The C structs are read
//! directly, which is faster than attribute lookups.
#![expect(unsafe_code, reason = "NumPy arrays are accessed through C structs")]

use std::ffi::{c_int, c_long};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use inlay::{DType, Layout, Tensor};
use numpy::npyffi::{self, NPY_TYPES, PY_ARRAY_API};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{PyTypeInfo, ffi, intern};

use crate::error::{Class, wrap};
use crate::tensor::PyTensor;

/// The cached descriptor of bfloat16. NumPy has no such type; the import of `ml_dtypes` registers
/// one.
static BFLOAT16: PyOnceLock<Py<PyArrayDescr>> = PyOnceLock::new();

const BFLOAT16_MISSING: &str =
    "NumPy has no bfloat16 of its own: install ml_dtypes, or cast to float32 first";

/// The class of NumPy's arrays. PyO3 asks NumPy for it each time, which takes 15 ns.
#[inline]
fn array_class(py: Python<'_>) -> *mut ffi::PyTypeObject {
    static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());
    let mut class = CLASS.load(Relaxed);
    if class.is_null() {
        class = PyUntypedArray::type_object_raw(py);
        CLASS.store(class, Relaxed);
    }
    class
}

/// Whether an object is a NumPy array, and not of a subclass.
#[inline]
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    object.get_type_ptr() == array_class(object.py())
}

/// The object as an array, unless it is of another class or a subclass.
#[inline]
pub(crate) fn as_array<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
) -> Option<&'a Bound<'py, PyUntypedArray>> {
    // SAFETY: the class of the object was compared.
    is_array(object).then(|| unsafe { object.cast_unchecked() })
}

/// Whether the elements of an array can be shared as they are: their dtype is one of NumPy's own, and
/// their bytes are in the order of the machine. Others are converted by Python code.
pub(crate) fn is_native(object: &Bound<'_, PyAny>) -> bool {
    let Some(array) = as_array(object) else { return false };
    let descr = array.dtype();
    descr.num() < NPY_TYPES::NPY_USERDEF as c_int && descr.is_native_byteorder() != Some(false)
}

/// Returns the descriptor of bfloat16. The first call imports `ml_dtypes`.
pub(crate) fn bfloat16_descr(py: Python<'_>) -> PyResult<&Bound<'_, PyArrayDescr>> {
    let descr = BFLOAT16.get_or_try_init(py, || {
        let class = py.import("ml_dtypes")?.getattr("bfloat16")?;
        PyResult::Ok(PyArrayDescr::new(py, class)?.unbind())
    });
    match descr {
        Ok(descr) => Ok(descr.bind(py)),
        Err(error) if error.is_instance_of::<PyImportError>(py) => {
            Err(Class::Type.error(py, BFLOAT16_MISSING))
        }
        Err(error) => Err(error),
    }
}

/// Returns the dtype of a NumPy type number, if there is one. The byte order is not part of the
/// number.
pub(crate) fn dtype_of_number(py: Python<'_>, number: c_int) -> Option<DType> {
    const LONG_IS_64: bool = size_of::<c_long>() == 8;
    const FIRST_OF_USERS: c_int = NPY_TYPES::NPY_USERDEF as c_int;
    Some(match number {
        0 => DType::Bool,
        1 => DType::I8,
        2 => DType::U8,
        3 => DType::I16,
        4 => DType::U16,
        5 => DType::I32,
        6 => DType::U32,
        7 if LONG_IS_64 => DType::I64,
        8 if LONG_IS_64 => DType::U64,
        7 => DType::I32,
        8 => DType::U32,
        9 => DType::I64,
        10 => DType::U64,
        11 => DType::F32,
        12 => DType::F64,
        14 => DType::C64,
        15 => DType::C128,
        23 => DType::F16,
        FIRST_OF_USERS.. if bfloat16_descr(py).is_ok_and(|descr| descr.num() == number) => {
            DType::BF16
        }
        _ => return None,
    })
}

/// Returns the NumPy descriptor of a dtype.
pub(crate) fn descr(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyArrayDescr>> {
    let number = match dtype {
        DType::Bool => NPY_TYPES::NPY_BOOL,
        DType::I8 => NPY_TYPES::NPY_BYTE,
        DType::U8 => NPY_TYPES::NPY_UBYTE,
        DType::I16 => NPY_TYPES::NPY_SHORT,
        DType::U16 => NPY_TYPES::NPY_USHORT,
        DType::I32 => NPY_TYPES::NPY_INT,
        DType::U32 => NPY_TYPES::NPY_UINT,
        // If `long` has 64 bits, NumPy uses it for int64.
        DType::I64 if size_of::<c_long>() == 8 => NPY_TYPES::NPY_LONG,
        DType::U64 if size_of::<c_long>() == 8 => NPY_TYPES::NPY_ULONG,
        DType::I64 => NPY_TYPES::NPY_LONGLONG,
        DType::U64 => NPY_TYPES::NPY_ULONGLONG,
        DType::F16 => NPY_TYPES::NPY_HALF,
        DType::F32 => NPY_TYPES::NPY_FLOAT,
        DType::F64 => NPY_TYPES::NPY_DOUBLE,
        DType::C64 => NPY_TYPES::NPY_CFLOAT,
        DType::C128 => NPY_TYPES::NPY_CDOUBLE,
        DType::BF16 => return bfloat16_descr(py).cloned(),
    };
    // SAFETY: `number` is a built-in type number (bfloat16 has returned above), for which NumPy
    // returns a new reference to a descriptor or sets an error.
    unsafe {
        let descr = PY_ARRAY_API.PyArray_DescrFromType(py, number as c_int);
        Ok(Bound::from_owned_ptr_or_err(py, descr.cast())?.cast_into_unchecked())
    }
}

/// `numpy.generic`, the base of NumPy's scalar types.
pub(crate) fn scalar_class(py: Python<'_>) -> Bound<'_, PyType> {
    // SAFETY: NumPy's API table holds a pointer to the type, which is never freed.
    unsafe {
        let class = npyffi::get_type_object(py, npyffi::NpyTypes::PyGenericArrType_Type);
        PyType::from_borrowed_type_ptr(py, class)
    }
}

/// Whether an object is a NumPy scalar.
pub(crate) fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    // Unlike `isinstance`, a type check calls no Python code of the object.
    // SAFETY: both pointers belong to live objects that are borrowed here.
    unsafe {
        ffi::PyObject_TypeCheck(object.as_ptr(), scalar_class(object.py()).as_type_ptr()) != 0
    }
}

/// The reason why an array can't be used as a tensor.
pub(crate) enum Unfit {
    /// The dtype is not supported.
    DType,
    /// The byte order is not the native one.
    ByteOrder,
    /// The strides exceed the address space.
    Extent,
}

/// Returns a tensor over the memory of an array. The tensor keeps the array alive.
pub(crate) fn share(array: &Bound<'_, PyUntypedArray>) -> Result<Tensor, Unfit> {
    let Memory { ptr, len, layout, dtype, writable } = Memory::of(array, Strides::Same)?;
    let owner = array.as_any().clone().unbind();
    // SAFETY: the memory is that of the array. `owner` keeps the array alive. `from_foreign` permits
    // that another thread writes to the array while an operation runs; the result is then
    // unspecified.
    unsafe { Tensor::from_foreign(ptr, len, layout, dtype, writable, owner) }
        .map_err(|_| Unfit::Extent)
}

/// Like [`share`], but the tensor does not keep the array alive.
///
/// # Safety
/// The array and its memory live until the tensor and all that share its memory are dropped or given
/// back.
// Inlined, as are the functions that it calls, so that the layout is built in its final place: a move
// of sizes that were just stored stalls, and there would be three of them.
#[inline(always)]
pub(crate) unsafe fn lend(array: &Bound<'_, PyUntypedArray>) -> Result<Tensor, Unfit> {
    let Memory { ptr, len, layout, dtype, writable } = Memory::of(array, Strides::Any)?;
    // SAFETY: as in `share`; the caller keeps the array alive.
    Ok(unsafe { Tensor::lend(ptr, len, layout, dtype, writable) })
}

/// Which strides the layout of an array has. The strides of axes of size 1 don't matter for the
/// elements, but `Tensor.strides` shows them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strides {
    /// Those of the array.
    Same,
    /// Any with the same elements. A contiguous array takes less time then.
    Any,
}

/// The elements of an array.
struct Memory {
    /// The lowest byte.
    ptr: NonNull<u8>,
    /// The number of bytes from the lowest to the highest one.
    len: usize,
    layout: Layout,
    dtype: DType,
    writable: bool,
}

impl Memory {
    #[inline(always)]
    fn of(array: &Bound<'_, PyUntypedArray>, strides: Strides) -> Result<Self, Unfit> {
        let py = array.py();
        // SAFETY: the type `PyUntypedArray` guarantees an array object, which has this C struct.
        // NumPy never leaves its descriptor null.
        let (fields, descr) = unsafe {
            let fields = &*npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr());
            (fields, &*npyffi::_PyDataType_GET_ITEM_DATA(fields.descr))
        };
        let dtype = dtype_of_number(py, descr.type_num).ok_or(Unfit::DType)?;
        let other_order = if cfg!(target_endian = "little") { b'>' } else { b'<' };
        if descr.byteorder as u8 == other_order {
            return Err(Unfit::ByteOrder);
        }
        let (shape, size) = (array.shape(), dtype.size());
        let dense = fields.flags & npyffi::NPY_ARRAY_C_CONTIGUOUS != 0;
        let (layout, low, len) = match dense && strides == Strides::Any {
            true => {
                let layout = Layout::contiguous("numpy", shape, size);
                let layout = layout.map_err(|_| Unfit::Extent)?;
                let len = layout.numel() * size;
                (layout, 0, len)
            }
            false => Layout::around(shape, array.strides(), size).ok_or(Unfit::Extent)?,
        };
        let start = fields.data.cast::<u8>().wrapping_offset(low);
        // The address of an empty array is not used, but tensors need an aligned one.
        let nowhere = NonNull::<u128>::dangling().cast();
        let ptr = NonNull::new(start).filter(|_| len > 0).unwrap_or(nowhere);
        let writable = fields.flags & npyffi::NPY_ARRAY_WRITEABLE != 0;
        Ok(Memory { ptr, len, layout, dtype, writable })
    }
}

/// Returns an array over the memory of a tensor. The array keeps the tensor alive.
pub(crate) fn view<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = tensor.py();
    let inner = tensor.get().inner();
    expect_memory(py, inner)?;
    // For an empty tensor NumPy chooses the strides, so that the array counts as contiguous.
    let strides = Some(inner.layout().strides()).filter(|_| inner.numel() > 0);
    let flags = if inner.is_writable() { npyffi::NPY_ARRAY_WRITEABLE } else { 0 };
    // SAFETY: data and strides are those of the tensor. `expect_memory` has checked that it has
    // memory on the CPU. The base object keeps the tensor alive, and it is set before the array is
    // returned. `PyArray_SetBaseObject` takes ownership of the reference to the base.
    unsafe {
        let array = new_array(py, inner, strides, inner.data_ptr(), flags)?;
        let base = tensor.clone().into_any().into_ptr();
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_array_ptr(), base) < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

/// Fails for a symbolic tensor, which has no memory.
pub(crate) fn expect_elements(py: Python<'_>, tensor: &Tensor, what: &'static str) -> PyResult<()> {
    tensor.expect_elements(what).map_err(|error| crate::error::raise(py, &error))
}

/// Fails for a tensor whose memory can't be shared: a symbolic one, or one on a GPU.
fn expect_memory(py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
    expect_elements(py, tensor, "numpy")?;
    tensor.expect_cpu("numpy").map_err(|error| crate::error::raise(py, &error))
}

/// The largest tensor that [`owned`] copies, in bytes. NumPy caches blocks of up to 1 KiB, and a
/// copy of that size takes 20 ns. A tensor object as the base of an array takes 150 ns.
const COPIED: usize = 1 << 10;

/// Copies a small, contiguous result to a new array. Returns `None` if the tensor is larger,
/// strided or over foreign memory. There must be no other handle to the tensor.
pub(crate) fn owned<'py>(
    py: Python<'py>,
    tensor: &Tensor,
) -> PyResult<Option<Bound<'py, PyUntypedArray>>> {
    expect_memory(py, tensor)?;
    let len = tensor.numel().saturating_mul(tensor.dtype().size());
    // A result over foreign memory is a view of an argument, and must stay a view.
    if len > COPIED || tensor.is_foreign() || !tensor.is_contiguous() {
        return Ok(None);
    }
    // SAFETY: with a null data pointer NumPy allocates a contiguous block of `len` bytes, which
    // can't overlap the tensor. The tensor has `len` contiguous bytes, as checked above.
    unsafe {
        let array = new_array(py, tensor, None, std::ptr::null_mut(), 0)?;
        let fields = &*npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr());
        std::ptr::copy_nonoverlapping(tensor.data_ptr(), fields.data.cast(), len);
        Ok(Some(array))
    }
}

/// Makes an array with the dtype and shape of a tensor.
///
/// # Safety
/// `data` is null, or points to elements with these strides that outlive the array.
unsafe fn new_array<'py>(
    py: Python<'py>,
    like: &Tensor,
    strides: Option<&[isize]>,
    data: *mut u8,
    flags: c_int,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let descr = descr(py, like.dtype())?;
    let dims = like.shape();
    // SAFETY: NumPy takes ownership of the reference `descr`, and only reads the dims and strides,
    // which live until the call returns. `usize` and NumPy's `npy_intp` have the same size, and the
    // sizes of tensors fit in both. The caller guarantees the data.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            array_class(py),
            descr.into_dtype_ptr(),
            dims.len() as c_int,
            dims.as_ptr().cast_mut().cast(),
            strides.map_or(std::ptr::null_mut(), |strides| strides.as_ptr().cast_mut()),
            data.cast(),
            flags,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array);
        Ok(array.map_err(|cause| wrap(py, "numpy", cause))?.cast_into_unchecked())
    }
}

/// Copies an array to native byte order.
pub(crate) fn to_native<'py>(
    array: &Bound<'py, PyUntypedArray>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = array.py();
    let native = array.dtype().call_method1(intern!(py, "newbyteorder"), ("=",))?;
    Ok(array.call_method1(intern!(py, "astype"), (native,))?.cast_into()?)
}

/// Calls the C function of `numpy.asarray`. It may run arbitrary Python code.
pub(crate) fn asarray<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    read(object, None)
}

/// Like [`asarray`], with a dtype.
pub(crate) fn asarray_of<'py>(
    object: &Bound<'py, PyAny>,
    descr: &Bound<'py, PyArrayDescr>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    read(object, Some(descr))
}

fn read<'py>(
    object: &Bound<'py, PyAny>,
    descr: Option<&Bound<'py, PyArrayDescr>>,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = object.py();
    let descr = descr.map_or(std::ptr::null_mut(), |descr| descr.clone().into_dtype_ptr());
    // SAFETY: the object is borrowed and live. A null descriptor lets NumPy choose the dtype; NumPy
    // takes ownership of the reference to another one. A null context is the default. The result is
    // a new reference to an array or an error.
    unsafe {
        let flags = npyffi::NPY_ARRAY_ENSUREARRAY;
        let context = std::ptr::null_mut();
        let array = PY_ARRAY_API.PyArray_FromAny(py, object.as_ptr(), descr, 0, 0, flags, context);
        Ok(Bound::from_owned_ptr_or_err(py, array)?.cast_into_unchecked())
    }
}

/// Whether an array is a NumPy masked array that has a mask.
pub(crate) fn has_mask(array: &Bound<'_, PyUntypedArray>) -> PyResult<bool> {
    static MASKED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = array.py();
    // SAFETY: the object is borrowed and live, and only its type is read.
    if unsafe { npyffi::PyArray_CheckExact(py, array.as_ptr()) } != 0 {
        return Ok(false);
    }
    let masked = MASKED.import(py, "numpy.ma", "MaskedArray")?;
    if !array.is_instance(masked)? {
        return Ok(false);
    }
    let none = py.import("numpy.ma")?.getattr("nomask")?;
    Ok(!array.getattr("mask")?.is(&none))
}
