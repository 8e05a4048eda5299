//! Exchanges with a simulated foreign library, which counts calls of its deleter.

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use inlay_core::{DType, Layout};

use super::managed::sealed::Form as _;
use super::*;
use crate::Tensor;

/// A managed tensor that counts how often it is deleted.
struct Foreign {
    data: Vec<f32>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    deleted: &'static AtomicUsize,
}

impl Foreign {
    fn managed(self, change: impl FnOnce(&mut DLTensor)) -> Managed<DLManagedTensor> {
        let this = Box::leak(Box::new(self));
        let mut view = DLTensor {
            data: this.data.as_mut_ptr().cast(),
            device: DLDevice { device_type: CPU, device_id: 0 },
            ndim: this.shape.len() as i32,
            dtype: DType::F32.into(),
            shape: this.shape.as_mut_ptr(),
            strides: if this.strides.is_empty() { null_mut() } else { this.strides.as_mut_ptr() },
            byte_offset: 0,
        };
        change(&mut view);
        let context: *mut c_void = std::ptr::from_mut(this).cast();
        let managed = Box::leak(Box::new(DLManagedTensor::new(view, 0, context, delete)));
        // SAFETY: the struct was just made as the header says, and any thread may call `delete`.
        unsafe { Managed::from_raw(NonNull::from(managed)) }
    }
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensor) {
    // SAFETY: `Foreign::managed` leaked both boxes, and `Managed` calls the deleter once.
    unsafe {
        let managed = Box::from_raw(managed);
        let foreign = Box::from_raw(managed.manager_ctx.cast::<Foreign>());
        foreign.deleted.fetch_add(1, SeqCst);
    }
}

#[test]
fn imported_memory_goes_back_once_with_the_last_handle() {
    static DELETED: AtomicUsize = AtomicUsize::new(0);
    let foreign = Foreign {
        data: (0..6).map(|n| n as f32).collect(),
        shape: vec![2, 2],
        strides: vec![-3, 1],
        deleted: &DELETED,
    };
    let managed = foreign.managed(|view| view.byte_offset = 12);
    let tensor = managed.into_tensor().expect("CPU floats");
    let other = tensor.clone();
    assert_eq!(tensor.to_vec::<f32>(), Ok(vec![3.0, 4.0, 0.0, 1.0]));
    drop(tensor);
    assert_eq!(DELETED.load(SeqCst), 0);
    drop(other);
    assert_eq!(DELETED.load(SeqCst), 1);
}

#[test]
fn refused_memory_goes_back_too() {
    static DELETED: AtomicUsize = AtomicUsize::new(0);
    type Change = fn(&mut DLTensor);
    let changes: [(Change, &str); 8] = [
        (|view| view.device.device_type = 2, "the device is CUDA"),
        (|view| view.dtype.lanes = 4, "4 lanes of 32-bit float"),
        (|view| view.dtype.code = 9, "type code 9"),
        (|view| view.data = null_mut(), "the data pointer is null"),
        (|view| view.ndim = -1, "ndim is -1"),
        (|view| view.shape = null_mut(), "shape is null"),
        // SAFETY: the shape of `foreign` below has two entries.
        (|view| unsafe { *view.shape = -2 }, "shape is [-2, 2]"),
        // SAFETY: the strides of `foreign` below have two entries.
        (|view| unsafe { *view.strides = i64::MAX }, "strides is"),
    ];
    for (count, (change, text)) in changes.into_iter().enumerate() {
        let foreign = Foreign {
            data: vec![0.0; 6],
            shape: vec![2, 2],
            strides: vec![3, 1],
            deleted: &DELETED,
        };
        let error = foreign.managed(change).into_tensor().err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(error.starts_with("from_dlpack: ") && error.contains(text), "{text}: {error}");
        assert_eq!(DELETED.load(SeqCst), count + 1);
    }
}

#[test]
fn null_strides_are_row_major() {
    static DELETED: AtomicUsize = AtomicUsize::new(0);
    let data = vec![1.0, 2.0, 3.0, 4.0];
    let foreign = Foreign { data, shape: vec![2, 2], strides: vec![], deleted: &DELETED };
    let tensor = foreign.managed(|_| ()).into_tensor().expect("CPU floats");
    assert_eq!(tensor.layout().strides(), [8, 4]);
    assert_eq!(tensor.to_vec::<f32>(), Ok(vec![1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn every_dtype_has_a_name_and_comes_back() {
    for dtype in DType::ALL {
        assert_eq!(DLDataType::from(dtype).dtype(), Some(dtype));
    }
    assert_eq!(DLDataType { code: 2, bits: 8, lanes: 1 }.describe(), "8-bit float");
    assert_eq!(DLDataType { code: 2, bits: 8, lanes: 1 }.dtype(), None);
}

/// Elements whose address is not a multiple of their size.
fn odd(writable: bool) -> Tensor {
    let mut bytes = Box::new([0u64; 4]);
    let ptr = NonNull::from(&mut *bytes).cast::<u8>();
    let layout = Layout::over(&[2], &[5], 1);
    // SAFETY: the box outlives the tensor, and no other code uses its bytes.
    let tensor = unsafe { Tensor::from_foreign(ptr, 32, layout, DType::F32, writable, bytes) };
    tensor.expect("within the bytes")
}

#[test]
fn what_dlpack_cannot_say_is_copied_only_if_allowed() {
    let x = odd(true);
    assert!(x.to_dlpack::<DLManagedTensor>(Copy::Never).is_err());
    let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::IfNeeded).expect("copies");
    assert_eq!(managed.form().flags, IS_COPIED);
    assert_eq!(managed.into_tensor().expect("ours").to_vec::<f32>(), Ok(vec![0.0; 2]));
}

#[test]
fn read_only_memory_stays_so() {
    let data: Box<[f32; 2]> = Box::new([1.0, 2.0]);
    let layout = Layout::contiguous("test", &[2], 4).expect("small");
    let ptr = NonNull::from(&*data).cast();
    // SAFETY: the box outlives the tensor, which does not write.
    let x = unsafe { Tensor::from_foreign(ptr, 8, layout, DType::F32, false, data) };
    let x = x.expect("within the bytes");
    let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never).expect("can be said");
    assert_eq!(managed.form().flags, READ_ONLY);
    assert!(!managed.into_tensor().expect("ours").is_writable());
    for copy in [Copy::Never, Copy::IfNeeded] {
        let error = x.to_dlpack::<DLManagedTensor>(copy).expect_err("0.x can't say it");
        assert!(error.to_string().contains("read-only"), "{error}");
    }
    let copied = x.to_dlpack::<DLManagedTensor>(Copy::Always).expect("a copy");
    assert!(copied.into_tensor().expect("ours").is_writable());
}

#[test]
fn sizes_of_zero_and_rank_zero_go_both_ways() {
    for shape in [&[][..], &[0], &[3, 0, 2], &[1, 1]] {
        let values = vec![7i16; shape.iter().product()];
        let x = Tensor::from_slice(&values, shape).expect("small");
        let managed = x.to_dlpack::<DLManagedTensor>(Copy::Never).expect("shares");
        let y = managed.into_tensor().expect("ours");
        assert_eq!((y.shape(), y.dtype(), y.to_vec::<i16>()), (shape, DType::I16, Ok(values)));
    }
}

#[test]
fn tables_are_found_by_their_major_version() {
    let table = |major, prev_api: *const DLPackExchangeAPI| DLPackExchangeAPI {
        header: DLPackExchangeAPIHeader {
            version: DLPackVersion { major, minor: 9 },
            prev_api: prev_api.cast(),
        },
        managed_tensor_allocator: None,
        managed_tensor_from_py_object_no_sync: Some(no_export),
        managed_tensor_to_py_object_no_sync: Some(no_import),
        dltensor_from_py_object_no_sync: None,
        current_work_stream: None,
    };
    let leak = |table| -> &'static DLPackExchangeAPI { Box::leak(Box::new(table)) };
    let first = leak(table(1, std::ptr::null()));
    let second = leak(table(2, first));
    let third = leak(table(3, second));
    // SAFETY: all tables are leaked, and the chain ends with null.
    let find = |table: &'static DLPackExchangeAPI| unsafe {
        DLPackExchangeAPI::find(std::ptr::from_ref(table).cast())
    };
    for start in [first, second, third] {
        assert!(find(start).is_some_and(|found| std::ptr::eq(found, first)));
    }
    assert!(find(leak(table(2, std::ptr::null()))).is_none());
    let part = DLPackExchangeAPI {
        managed_tensor_to_py_object_no_sync: None,
        ..table(1, std::ptr::null())
    };
    assert!(find(leak(part)).is_none(), "a function is missing that a table must have");
}

unsafe extern "C" fn no_export(_: *mut c_void, _: *mut *mut DLManagedTensorVersioned) -> i32 {
    -1
}

unsafe extern "C" fn no_import(_: *mut DLManagedTensorVersioned, _: *mut *mut c_void) -> i32 {
    -1
}

#[test]
fn allocated_memory_has_the_shape_of_its_prototype() {
    let x = Tensor::from_slice(&[0i16; 6], &[2, 3]).expect("small");
    let dims = Dims::of(&x).expect("whole elements");
    // SAFETY: `dims` has the sizes of the prototypes below.
    let allocate = |prototype: &DLTensor| unsafe { allocate(prototype) };
    let y = allocate(&dims.view(&x)).and_then(Managed::into_tensor).expect("small");
    assert_eq!((y.shape(), y.dtype(), y.is_writable()), (&[2, 3][..], DType::I16, true));
    assert_ne!(x.data_ptr(), y.data_ptr());
    type Change = fn(&mut DLTensor);
    let changes: [(Change, &str); 4] = [
        (|view| view.device.device_type = 2, "the device is CUDA"),
        (|view| view.dtype.lanes = 4, "4 lanes"),
        (|view| view.ndim = -1, "ndim is -1"),
        (|view| view.shape = null_mut(), "shape is null"),
    ];
    for (change, text) in changes {
        let mut view = dims.view(&x);
        change(&mut view);
        let error = allocate(&view).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn strides_that_are_not_used_are_those_of_contiguous_memory() {
    let strides = |x: &Tensor| {
        let managed = x.to_dlpack::<DLManagedTensorVersioned>(Copy::Never).expect("shares");
        let view = managed.form().tensor();
        // SAFETY: an exported tensor has one stride for each dimension.
        unsafe { std::slice::from_raw_parts(view.strides, view.ndim as usize) }.to_vec()
    };
    for (shape, expected) in [([2, 1, 3, 1], [3, 3, 1, 1]), ([2, 0, 3, 1], [3, 3, 1, 1])] {
        let x = Tensor::zeros(shape, DType::F64).expect("small");
        assert_eq!(strides(&x), expected);
        let same = x.to_dlpack::<DLManagedTensor>(Copy::Never).and_then(Managed::into_tensor);
        assert_eq!(strides(&same.expect("ours")), expected, "the strides came back as 0");
    }
    let x = Tensor::zeros([1, 4, 1, 6], DType::F64).expect("small").transpose(&[3, 0, 1, 2]);
    assert_eq!(strides(&x.expect("a view")), [1, 24, 6, 1]);
}
