//! Arrays of `ndarray`: owned ones of any strides, views, and results of fixed and dynamic rank.

use inlay::{Complex64, DType, Error, Tensor, bf16};
use ndarray::{Array, Array1, Array2, Array3, ArrayD, Axis, Ix2, ShapeBuilder, array, s};

use crate::support::device::also_on_gpu;

#[test]
fn an_owned_array_gives_its_memory() {
    let rows = array![[1.0f32, 2.0], [3.0, 4.0]];
    let start = rows.as_ptr();
    let x = Tensor::try_from(rows).unwrap();
    assert_eq!((x.dtype(), x.shape()), (DType::F32, &[2, 2][..]));
    assert_eq!(x.data_ptr().cast_const().cast(), start);
}

#[test]
fn an_owned_array_of_any_strides_gives_its_memory() {
    let columns = Array2::from_shape_vec((2, 3).f(), vec![1i64, 4, 2, 5, 3, 6]).unwrap();
    let start = columns.as_ptr();
    let x = Tensor::try_from(columns).unwrap();
    assert_eq!(x.data_ptr().cast_const().cast(), start);
    assert_eq!(x.to_vec::<i64>().unwrap(), [1, 2, 3, 4, 5, 6]);

    let mut reversed = Array3::from_shape_fn((2, 3, 4), |(a, b, c)| (a * 12 + b * 4 + c) as u16);
    reversed.invert_axis(Axis(1));
    let part = reversed.slice_move(s![1.., .., 1..;2]);
    let expected: Vec<u16> = part.iter().copied().collect();
    let x = Tensor::try_from(part).unwrap();
    assert_eq!((x.shape(), x.to_vec::<u16>().unwrap()), (&[1, 3, 2][..], expected));
}

#[test]
fn views_are_copied() {
    let rows = array![[1u8, 2, 3], [4, 5, 6]];
    let whole = Tensor::try_from(&rows).unwrap();
    let view = Tensor::try_from(rows.view()).unwrap();
    let part = Tensor::try_from(rows.slice(s![.., ..;-2])).unwrap();
    let turned = Tensor::try_from(&rows.t()).unwrap();
    drop(rows);
    assert_eq!(whole.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(view.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(part.to_vec::<u8>().unwrap(), [3, 1, 6, 4]);
    assert_eq!(
        (turned.shape(), turned.to_vec::<u8>().unwrap()),
        (&[3, 2][..], vec![1, 4, 2, 5, 3, 6])
    );
}

#[test]
fn tensors_become_arrays() {
    let x = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let fixed = Array::<f64, Ix2>::try_from(&x).unwrap();
    assert_eq!(fixed, array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let dynamic = ArrayD::<f64>::try_from(x.transpose(&[1, 0]).unwrap()).unwrap();
    assert_eq!(dynamic, array![[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]].into_dyn());
    let bools = Tensor::from_bytes(&[0, 7], &[2], DType::Bool).unwrap();
    assert_eq!(Array1::<bool>::try_from(bools).unwrap(), array![false, true]);
}

#[test]
fn scalars_empty_arrays_and_other_dtypes_convert() {
    let scalar = Tensor::try_from(ndarray::arr0(Complex64::new(1.0, 2.0))).unwrap();
    assert_eq!((scalar.rank(), scalar.dtype()), (0, DType::C128));
    let none = Tensor::try_from(Array2::<bf16>::from_elem((0, 3), bf16::ONE)).unwrap();
    assert_eq!((none.shape(), none.dtype()), (&[0, 3][..], DType::BF16));
    assert_eq!(Array2::<bf16>::try_from(&none).unwrap().dim(), (0, 3));
}

#[test]
fn another_rank_or_dtype_is_an_error() {
    let x = Tensor::zeros(&[2, 3], DType::F32).unwrap();
    let error = Array1::<f32>::try_from(&x).unwrap_err();
    assert_eq!(error.to_string(), "to_ndarray: self is of rank 2, expected rank 1");
    let error = Array2::<f64>::try_from(&x).unwrap_err();
    assert_eq!(error.to_string(), "to_ndarray: self has dtype float32, expected float64");
    let huge = Tensor::zeros(&[0, usize::MAX, usize::MAX], DType::F32).unwrap();
    let error = ArrayD::<f32>::try_from(&huge).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

also_on_gpu!(views_are_copied);
