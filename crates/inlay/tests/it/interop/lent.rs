//! Tensors over lent memory, whose allocations are reused.
#![expect(unsafe_code, reason = "memory is lent as raw pointers")]

use inlay::interop::dlpack::{CPU, DLDevice, DLTensor};
use inlay::{DType, Tensor};

/// Lends the elements of an array, which outlives the tensor in every test.
fn lend<const N: usize>(values: *mut [f32; N], writable: bool) -> Tensor {
    let mut shape = [i64::try_from(N).expect("short")];
    let view = DLTensor {
        data: values.cast(),
        device: DLDevice { device_type: CPU, device_id: 0 },
        ndim: 1,
        dtype: DType::F32.into(),
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    // SAFETY: the struct describes the elements of the array.
    unsafe { view.lend(writable) }.expect("one dimension")
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().expect("float32")
}

#[test]
fn nothing_of_a_tensor_passes_to_the_next() {
    let (mut a, mut b) = ([1.0, 2.0], [3.0, 4.0, 5.0]);
    let first = lend(&mut a, true);
    first.multiply_(10.0).expect("writable");
    first.set_stop_gradient(false).expect("a leaf");
    first.set_stop_gradient(true).expect("a leaf");
    first.give_back();
    let second = lend(&mut b, false);
    assert_eq!(values(&second), [3.0, 4.0, 5.0]);
    assert!(second.multiply_(10.0).is_err());
    assert!(second.is_foreign() && second.stop_gradient());
    second.give_back();
    assert_eq!((a, b), ([10.0, 20.0], [3.0, 4.0, 5.0]));
}

#[test]
fn memory_that_a_view_uses_stays() {
    let (mut a, mut b) = ([1.0, 2.0], [3.0, 4.0]);
    let first = lend(&mut a, false);
    let part = first.i(1).expect("two elements");
    first.give_back();
    let second = lend(&mut b, false);
    assert_eq!((values(&part), values(&second)), (vec![2.0], vec![3.0, 4.0]));
}

#[test]
fn a_tensor_that_is_still_used_stays() {
    let (mut a, mut b) = ([1.0, 2.0], [3.0, 4.0]);
    let first = lend(&mut a, false);
    let handle = first.clone();
    first.give_back();
    let second = lend(&mut b, false);
    assert_eq!((values(&handle), values(&second)), (vec![1.0, 2.0], vec![3.0, 4.0]));
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
    let a = &raw mut a;
    assert_eq!(values(&lend(a, false)), [1.0]);
    for _ in 0..20 {
        let lent: Vec<Tensor> = (0..20).map(|_| lend(a, false)).collect();
        assert!(lent.iter().all(|tensor| values(tensor) == [1.0]));
        lent.into_iter().for_each(Tensor::give_back);
    }
}
