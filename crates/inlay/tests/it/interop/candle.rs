//! Tensors of Candle: the dtypes that both have, and errors for the others.

use candle_core::{DType as CandleDType, Device, Tensor as CandleTensor};
use inlay::{DType, Tensor};

use crate::support::{Nd, Rng};

#[test]
fn tensors_of_common_dtypes_round_trip() {
    use DType::{BF16, F16, F32, F64, I16, I32, I64, U8, U32};
    let mut rng = Rng(21);
    for dtype in [U8, U32, I16, I32, I64, BF16, F16, F32, F64] {
        for shape in [&[][..], &[4], &[2, 0], &[2, 3, 2]] {
            let ours = Nd::random(&mut rng, dtype, shape).tensor();
            let theirs = CandleTensor::try_from(&ours).unwrap();
            assert_eq!(theirs.dims(), shape);
            let back = Tensor::try_from(&theirs).unwrap();
            assert!(Nd::of_tensor(&back) == Nd::of_tensor(&ours), "{dtype} {shape:?}");
        }
    }
}

#[test]
fn strided_tensors_convert() {
    let theirs = CandleTensor::arange(0i64, 6, &Device::Cpu).unwrap().reshape((2, 3)).unwrap();
    let ours = Tensor::try_from(theirs.t().unwrap()).unwrap();
    assert_eq!(
        (ours.shape(), ours.to_vec::<i64>().unwrap()),
        (&[3, 2][..], vec![0, 3, 1, 4, 2, 5])
    );
    let back = CandleTensor::try_from(ours.transpose(&[1, 0]).unwrap()).unwrap();
    assert_eq!(back.to_vec2::<i64>().unwrap(), [[0, 1, 2], [3, 4, 5]]);
}

#[test]
fn dtypes_that_one_side_lacks_are_errors() {
    let error = CandleTensor::try_from(Tensor::ones(&[1], DType::Bool).unwrap()).unwrap_err();
    let text = "to_candle: self has dtype bool, expected a dtype that Candle has; cast it first";
    assert_eq!(error.to_string(), text);
    let small = CandleTensor::zeros(2, CandleDType::F8E4M3, &Device::Cpu).unwrap();
    let error = Tensor::try_from(&small).unwrap_err().to_string();
    assert!(error.starts_with("from_candle: tensor is of dtype f8e4m3, expected"), "{error}");
}
