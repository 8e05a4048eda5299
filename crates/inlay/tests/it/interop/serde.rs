//! Tensors in formats with and without names of fields, and input that lies about its size.

use inlay::{DType, Tensor};

use crate::support::device::also_on_gpu;
use crate::support::{Nd, Rng};

#[test]
fn tensors_of_every_dtype_round_trip() {
    let mut rng = Rng(5);
    for dtype in DType::ALL {
        for shape in [&[][..], &[3], &[2, 0, 3], &[2, 3]] {
            let x = Nd::random(&mut rng, dtype, shape).tensor();
            let expected = Nd::of_tensor(&x);
            let json = serde_json::to_string(&x).unwrap();
            let back: Tensor = serde_json::from_str(&json).unwrap();
            assert!(Nd::of_tensor(&back) == expected, "{json}");
            let bytes = postcard::to_allocvec(&x).unwrap();
            let back: Tensor = postcard::from_bytes(&bytes).unwrap();
            assert!(Nd::of_tensor(&back) == expected, "{json}");
        }
    }
}

#[test]
fn strided_tensors_are_written_in_row_major_order() {
    let x = Tensor::from_slice(&[1u8, 2, 3, 4], &[2, 2]).unwrap().transpose(&[1, 0]).unwrap();
    let json = serde_json::to_string(&x).unwrap();
    assert_eq!(json, r#"{"dtype":"U8","shape":[2,2],"data":[1,3,2,4]}"#);
}

#[test]
fn a_tensor_can_be_a_field_of_a_struct() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Layer {
        name: String,
        weight: Tensor,
    }
    let weight = Tensor::from_slice(&[0.5f32, -1.0], &[2]).unwrap();
    let json = serde_json::to_string(&Layer { name: "first".into(), weight }).unwrap();
    let Layer { name, weight } = serde_json::from_str(&json).unwrap();
    assert_eq!((name.as_str(), weight.to_vec::<f32>().unwrap()), ("first", vec![0.5, -1.0]));
}

#[test]
fn input_that_lies_about_its_size_is_an_error() {
    let refused = |json: &str| serde_json::from_str::<Tensor>(json).unwrap_err().to_string();
    let error = refused(r#"{"dtype":"F32","shape":[2],"data":[1,2,3]}"#);
    assert!(error.contains("from_bytes: bytes is 3 bytes, expected the 8 bytes"), "{error}");
    // Each of these shapes would need more memory than there is.
    refused(r#"{"dtype":"F64","shape":[1099511627776],"data":[1]}"#);
    refused(r#"{"dtype":"U8","shape":[18446744073709551615,18446744073709551615],"data":[]}"#);
    refused(r#"{"dtype":"U8","shape":[1],"data":[256]}"#);
    refused(r#"{"dtype":"float8","shape":[0],"data":[]}"#);
    refused(r#"{"dtype":"U8","shape":[0]}"#);
    let mut bytes = postcard::to_allocvec(&Tensor::zeros(&[9], DType::U8).unwrap()).unwrap();
    for len in 0..bytes.len() {
        assert!(postcard::from_bytes::<Tensor>(&bytes[..len]).is_err());
    }
    // The number of bytes of the data is the third number. Here it is nearly 2^63.
    bytes.truncate(3);
    bytes.extend([0xff; 8]);
    bytes.push(0x7f);
    assert!(postcard::from_bytes::<Tensor>(&bytes).is_err());
}

also_on_gpu!(tensors_of_every_dtype_round_trip);
