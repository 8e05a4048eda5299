//! Tensors over lent memory, whose allocations are reused.
#![expect(unsafe_code, reason = "memory is lent as raw pointers")]

use inlay::interop::dlpack::{CPU, DLDevice, DLTensor};
use inlay::{DType, Tensor};

/// Lends the elements of a slice, which outlives the tensor in every test.
fn lend(values: &mut [f32], writable: bool) -> Tensor {
    let mut shape = [i64::try_from(values.len()).expect("short")];
    let view = DLTensor {
        data: values.as_mut_ptr().cast(),
        device: DLDevice { device_type: CPU, device_id: 0 },
        ndim: 1,
        dtype: DType::F32.into(),
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    // SAFETY: the struct describes the elements of the slice.
    unsafe { view.lend(writable) }.expect("one dimension")
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().expect("float32")
}

#[test]
fn a_tensor_that_was_given_back_is_used_again() {
    let (mut a, mut b) = ([1.0, 2.0], [3.0, 4.0, 5.0]);
    let first = lend(&mut a, true);
    first.multiply_(10.0).expect("writable");
    first.give_back();
    let second = lend(&mut b, false);
    assert_eq!(values(&second), [3.0, 4.0, 5.0]);
    // Neither the permission nor the shape of the first one is left.
    assert!(second.multiply_(10.0).is_err());
    assert!(second.is_foreign());
    second.give_back();
    assert_eq!((a, b), ([10.0, 20.0], [3.0, 4.0, 5.0]));
}

#[test]
fn what_is_still_used_is_not_used_again() {
    let (mut a, mut b) = ([1.0, 2.0], [3.0, 4.0]);
    let first = lend(&mut a, false);
    let (handle, part) = (first.clone(), first.i(1).expect("two elements"));
    first.give_back();
    let second = lend(&mut b, false);
    assert_eq!((values(&handle), values(&part)), (vec![1.0, 2.0], vec![2.0]));
    drop(handle);
    second.give_back();
    assert_eq!(values(&part), [2.0]);
    assert_eq!(values(&lend(&mut b, false)), [3.0, 4.0]);
    assert_eq!(values(&part), [2.0]);
}

#[test]
fn a_gradient_does_not_pass_to_the_next() {
    let (mut a, mut b) = ([1.0, 2.0], [3.0, 4.0]);
    let first = lend(&mut a, false);
    first.set_stop_gradient(false).expect("a leaf");
    first.give_back();
    assert!(lend(&mut b, false).stop_gradient());
}

#[test]
fn other_tensors_may_be_given_back() {
    Tensor::from([1.0f32]).give_back();
    let mut a = [1.0];
    assert_eq!(values(&lend(&mut a, false)), [1.0]);
    for _ in 0..20 {
        let lent: Vec<Tensor> = (0..20).map(|_| lend(&mut a, false)).collect();
        assert!(lent.iter().all(|tensor| values(tensor) == [1.0]));
        lent.into_iter().for_each(Tensor::give_back);
    }
}
