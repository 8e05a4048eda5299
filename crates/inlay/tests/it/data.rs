//! Tests of data in and out of tensors: vectors, slices and bytes, and what may happen while a
//! slice is borrowed.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use inlay::{
    Complex64, DType, Device, Element, Error, Layout, Reduce, Scatter, Tensor, bf16,
    current_device, f16,
};

use crate::support::device::{also_on_gpu, threads};
use crate::support::{Nd, Rng};

/// Adds 1 to every element of a vector of two `i64`, in place.
fn increment(x: &Tensor) -> inlay::Result<()> {
    let index = Tensor::from_slice(&[0i64, 1], &[2]).unwrap();
    let ones = Tensor::ones(&[2], DType::I64).unwrap();
    let sum = Scatter::reduce(Reduce::Sum).include_self(true);
    x.scatter_(&index, &ones, sum).map(drop)
}

#[test]
fn a_vector_of_every_type_becomes_a_tensor_without_a_copy() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(values: [T; 4]) {
        let mut given = Vec::with_capacity(9);
        given.extend(values);
        let start = given.as_ptr();
        let x = Tensor::from_vec(given, &[2, 2]).unwrap();
        assert_eq!((x.dtype(), x.shape()), (T::DTYPE, &[2, 2][..]));
        assert!(x.is_contiguous() && x.is_writable() && !x.is_foreign());
        if current_device() == Device::Cpu {
            assert_eq!(x.data_ptr().cast_const().cast(), start);
        }
        assert_eq!(x.to_vec::<T>().unwrap(), values);
        // The tensor is written like any other, also by kernels that use vector instructions.
        let back = Tensor::from_slice(&[1i64, 0], &[2]).unwrap();
        x.scatter_(&back, &x, Scatter::overwrite()).unwrap();
        let [a, b, c, d] = values;
        assert_eq!(x.to_vec::<T>().unwrap(), [c, d, a, b]);
        x.with_slice(|slice: &[T]| assert_eq!(slice, [c, d, a, b])).unwrap();
    }
    check([true, false, false, true]);
    check([1u8, 2, 3, 255]);
    check([1i8, -2, 3, 127]);
    check([1u16, 2, 3, u16::MAX]);
    check([1i16, -2, 3, i16::MIN]);
    check([1u32, 2, 3, u32::MAX]);
    check([1i32, -2, 3, i32::MIN]);
    check([1u64, 2, 3, u64::MAX]);
    check([1i64, -2, 3, i64::MIN]);
    check([f16::ONE, f16::MAX, f16::NEG_ONE, f16::ZERO]);
    check([bf16::ONE, bf16::MAX, bf16::NEG_ONE, bf16::ZERO]);
    check([1.0f32, -2.5, f32::MAX, f32::INFINITY]);
    if current_device() == Device::Cpu {
        check([1.0f64, -2.5, f64::MAX, f64::INFINITY]);
        check([1.0f32, 2.0, 3.0, 4.0].map(|re| inlay::Complex32::new(re, -re)));
        check([1.0f64, 2.0, 3.0, 4.0].map(|re| Complex64::new(re, -re)));
    }
}

#[test]
fn vectors_at_any_alignment_give_the_same_results() {
    // A vector is aligned as its elements are, not to 64 bytes as other memory is.
    for len in [1usize, 63, 1000, 300_000] {
        let values: Vec<f32> = (0..len).map(|k| k as f32).collect();
        let (own, given) =
            (Tensor::from_slice(&values, &[len]), Tensor::from_vec(values.clone(), &[len]));
        let (own, given) = (own.unwrap(), given.unwrap());
        let (a, b) = (own.add(&own).unwrap(), given.add(&given).unwrap());
        assert_eq!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    }
}

#[test]
fn vectors_and_bytes_must_fit_their_shape() {
    let error = Tensor::from_vec(vec![0f32; 3], &[2, 2]).unwrap_err();
    assert_eq!(error.to_string(), "from_vec: shape is [2, 2], expected one of 3 elements");
    assert!(Tensor::from_vec(vec![0f32; 3], &[usize::MAX, 2]).is_err());
    let error = Tensor::from_bytes(&[0; 7], &[2], DType::F32).unwrap_err();
    let text = "from_bytes: bytes is 7 bytes, expected the 8 bytes of shape [2] and dtype float32";
    assert_eq!(error.to_string(), text);
    assert!(Tensor::from_bytes(&[0; 7], &[1usize << 40], DType::U8).is_err());
    assert!(Tensor::from_bytes(&[], &[usize::MAX, usize::MAX], DType::C128).is_err());
    let none = Tensor::from_vec(Vec::<i64>::new(), &[usize::MAX, 0, usize::MAX]).unwrap();
    assert!(none.to_vec::<i64>().unwrap().is_empty());
    assert_eq!(none.with_slice(|values: &[i64]| values.len()).unwrap(), 0);
    assert_eq!(none.with_bytes(<[u8]>::len).unwrap(), 0);
    let scalar = Tensor::from_bytes(&7u64.to_ne_bytes(), (), DType::U64).unwrap();
    assert_eq!(scalar.to_vec::<u64>().unwrap(), [7]);
}

#[test]
fn another_type_is_an_error() {
    let x = Tensor::from_vec(vec![1.0f32], &[1]).unwrap();
    let error = x.with_slice(|_: &[f64]| ()).unwrap_err();
    assert_eq!(error.to_string(), "with_slice: self has dtype float32, expected float64");
    let error = x.to_vec::<i32>().unwrap_err();
    assert_eq!(error.to_string(), "to_vec: self has dtype float32, expected int32");
}

#[test]
fn values_and_bytes_of_any_layout_are_in_row_major_order() {
    let mut rng = Rng(11);
    // The last shape is large enough for tiles and several threads.
    for shape in [&[][..], &[0, 3], &[5], &[4, 7], &[3, 1, 5], &[1100, 1000]] {
        for dtype in [DType::Bool, DType::I8, DType::BF16, DType::F32, DType::C64] {
            let start = Nd::random(&mut rng, dtype, shape);
            let order: Vec<usize> = (0..shape.len()).rev().collect();
            let axes: Vec<_> = order.iter().map(|&axis| axis as i64).collect();
            let turned = start.tensor().transpose(&axes).unwrap();
            let back = turned.copy().unwrap().transpose(&axes).unwrap();
            let bytes: Vec<u8> =
                start.cells.iter().flat_map(|cell| cell[..dtype.size()].to_vec()).collect();
            for threads in threads() {
                inlay::set_num_threads(threads);
                for tensor in [&start.tensor(), &back] {
                    assert_eq!(tensor.to_bytes().unwrap(), bytes, "{dtype} {shape:?}");
                    tensor.with_bytes(|seen| assert_eq!(seen, bytes)).unwrap();
                }
            }
            let again = Tensor::from_bytes(&bytes, shape, dtype).unwrap();
            assert_eq!(Nd::of_tensor(&again).cells, start.cells, "{dtype} {shape:?}");
        }
    }
}

#[test]
fn a_contiguous_tensor_is_borrowed_where_it_is() {
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    let start = x.data_ptr().cast_const();
    assert!(x.with_slice(|values: &[f32]| std::ptr::eq(values.as_ptr().cast(), start)).unwrap());
    assert!(x.with_bytes(|bytes| std::ptr::eq(bytes.as_ptr(), start)).unwrap());
    let turned = x.transpose(&[1, 0]).unwrap();
    turned.with_slice(|values: &[f32]| assert_eq!(values, [1.0, 3.0, 2.0, 4.0])).unwrap();
}

#[test]
fn foreign_bools_of_any_byte_are_read_as_bools() {
    static BYTES: [u8; 4] = [0, 1, 2, 255];
    let layout = Layout::contiguous("test", &[4], 1).unwrap();
    let start = NonNull::from(&BYTES).cast();
    // SAFETY: the bytes are static and initialized, and the tensor is read-only.
    let x = unsafe { Tensor::from_foreign(start, 4, layout, DType::Bool, false, ()) }.unwrap();
    for x in [&x, &x.copy().unwrap(), &Tensor::from_bytes(&BYTES, &[4], DType::Bool).unwrap()] {
        let expected = [false, true, true, true];
        assert_eq!(x.to_vec::<bool>().unwrap(), expected);
        x.with_slice(|values: &[bool]| assert_eq!(values, expected)).unwrap();
        assert_eq!(x.to_bytes().unwrap(), [0, 1, 1, 1]);
        x.with_bytes(|bytes| assert_eq!(bytes, [0, 1, 1, 1])).unwrap();
    }
}

#[test]
fn memory_of_another_library_is_copied_before_it_is_borrowed() {
    let values = [1.0f32, 2.0];
    let layout = Layout::contiguous("test", &[2], 4).unwrap();
    let start = NonNull::from(&values).cast();
    // SAFETY: the values outlive the tensor, which is read-only.
    let x = unsafe { Tensor::from_foreign(start, 8, layout, DType::F32, false, ()) }.unwrap();
    x.with_slice(|slice: &[f32]| {
        assert_eq!(slice, values);
        assert_ne!(slice.as_ptr(), values.as_ptr());
    })
    .unwrap();
}

#[test]
fn a_borrowed_tensor_can_be_read_but_not_written_by_its_thread() {
    let x = Tensor::from_vec(vec![1i64, 2], &[2]).unwrap();
    let other = Tensor::from_vec(vec![5i64, 6], &[2]).unwrap();
    x.with_slice(|values: &[i64]| {
        assert_eq!(x.to_vec::<i64>().unwrap(), values);
        assert_eq!(x.add(&x).unwrap().to_vec::<i64>().unwrap(), [2, 4]);
        x.with_slice(|again: &[i64]| assert_eq!(again, values)).unwrap();
        let error = increment(&x).unwrap_err();
        let text =
            "scatter: x is borrowed by with_slice or with_bytes and can't be written in place";
        assert_eq!(error.to_string(), text);
        // A view shares the memory. Another tensor does not.
        assert!(matches!(increment(&x.reshape(&[2]).unwrap()), Err(Error::Borrowed { .. })));
        increment(&other).unwrap();
        assert_eq!(values, [1, 2]);
    })
    .unwrap();
    increment(&x).unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [2, 3]);
    assert_eq!(other.to_vec::<i64>().unwrap(), [6, 7]);
}

#[test]
fn a_panic_ends_the_borrow() {
    let x = Tensor::from_vec(vec![1i64, 2], &[2]).unwrap();
    let read = || x.with_slice(|_: &[i64]| panic!("a test"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err());
    increment(&x).unwrap();
}

#[test]
fn a_write_of_another_thread_waits_for_the_borrow_and_does_not_block_readers() {
    let x = Tensor::from_vec(vec![1i64, 2], &[2]).unwrap();
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        x.with_slice(|values: &[i64]| {
            scope.spawn(|| {
                increment(&x).unwrap();
                written.store(true, Ordering::SeqCst);
            });
            for _ in 0..200 {
                std::thread::yield_now();
                assert_eq!(x.to_vec::<i64>().unwrap(), values);
            }
            assert!(!written.load(Ordering::SeqCst));
        })
        .unwrap();
    });
    assert_eq!(x.to_vec::<i64>().unwrap(), [2, 3]);
}

#[test]
fn threads_that_borrow_and_write_each_others_tensors_do_not_wait_forever() {
    let [a, b] = [1i64, 2].map(|k| Tensor::from_vec(vec![k; 2], &[2]).unwrap());
    let all = Tensor::from_slice(&[0i64, 1], &[2]).unwrap();
    let overwrite = Scatter::overwrite();
    std::thread::scope(|scope| {
        for (x, y) in [(&a, &b), (&b, &a)] {
            // Inside of a borrow, a write of a tensor that the other thread borrows may fail.
            scope.spawn(|| (0..300).for_each(|_| drop(x.with_slice(|_: &[i64]| increment(y)))));
            scope.spawn(|| {
                (0..300).for_each(|_| {
                    x.scatter_(&all, y, overwrite).unwrap();
                });
            });
        }
    });
}

also_on_gpu!(
    a_vector_of_every_type_becomes_a_tensor_without_a_copy,
    vectors_and_bytes_must_fit_their_shape,
    another_type_is_an_error,
    values_and_bytes_of_any_layout_are_in_row_major_order,
);
