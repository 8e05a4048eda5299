//! Files of safetensors: all dtypes, malformed files, and what the format does not have.

use std::collections::BTreeMap;
use std::path::PathBuf;

use inlay::interop::safetensors::{View, load, save};
use inlay::{DType, Error, Tensor};
use safetensors::tensor::{Dtype, TensorView};

use crate::support::device::also_on_gpu;
use crate::support::{Nd, Rng};

/// A path in the directory of temporary files that is removed on drop.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let name = format!("inlay-{}-{name}.safetensors", std::process::id());
        Temporary(std::env::temp_dir().join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[test]
fn a_map_of_tensors_round_trips() {
    let mut rng = Rng(8);
    let device = inlay::current_device();
    let file = Temporary::new(&format!("map-{device:?}"));
    let mut tensors = BTreeMap::new();
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::C128) {
        for (name, shape) in [("0d", &[][..]), ("empty", &[0, 2]), ("2d", &[3, 5])] {
            let tensor = Nd::random(&mut rng, dtype, shape).tensor();
            tensors.insert(format!("{name}.{dtype}"), tensor);
        }
    }
    let strided = tensors["2d.float32"].transpose(&[1, 0]).unwrap();
    tensors.insert("strided".into(), strided);
    save(&tensors, &file.0).unwrap();
    let loaded = load(&file.0).unwrap();
    assert_eq!(loaded.len(), tensors.len());
    for (name, tensor) in &tensors {
        assert_eq!(loaded[name].device(), device);
        assert!(Nd::of_tensor(&loaded[name]) == Nd::of_tensor(tensor), "{name}");
    }
}

#[test]
fn a_view_does_not_copy_a_contiguous_tensor() {
    let x = Tensor::from_vec(vec![1i32, 2, 3], &[3]).unwrap();
    let view = View::try_from(&x).unwrap();
    let data = safetensors::View::data(&view);
    assert_eq!(data.as_ptr(), x.data_ptr().cast_const());
    // While the view exists, its thread can't write the tensor.
    let (index, five) = (Tensor::zeros(&[1], DType::I64), Tensor::ones(&[1], DType::I32));
    let (index, five) = (index.unwrap(), five.unwrap());
    let write = || x.scatter_(&index, &five, inlay::Scatter::overwrite()).map(drop);
    assert!(matches!(write(), Err(Error::Borrowed { .. })));
    drop(view);
    write().unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), [1, 2, 3]);
}

#[test]
fn dtypes_that_one_side_lacks_are_errors() {
    let wide = Tensor::zeros(&[1], DType::C128).unwrap();
    let error = View::try_from(&wide).err().unwrap();
    let text = "safetensors: self has dtype complex128, expected a dtype of safetensors, which are \
                all but complex128";
    assert_eq!(error.to_string(), text);
    let small = TensorView::new(Dtype::F8_E4M3, vec![2], &[0, 1]).unwrap();
    let error = Tensor::try_from(&small).unwrap_err().to_string();
    assert!(error.starts_with("safetensors: tensor is of dtype F8_E4M3, expected"), "{error}");
}

#[test]
fn files_that_are_missing_or_malformed_are_errors() {
    let file = Temporary::new("malformed");
    assert!(matches!(load(&file.0), Err(Error::Io { op: "safetensors::load", .. })));
    let whole = Tensor::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
    save([("x", &whole)], &file.0).unwrap();
    let bytes = std::fs::read(&file.0).unwrap();
    for len in 0..bytes.len() {
        std::fs::write(&file.0, &bytes[..len]).unwrap();
        assert!(load(&file.0).is_err(), "{len} of {} bytes", bytes.len());
    }
    let nowhere = file.0.join("no directory");
    assert!(matches!(save([("x", &whole)], nowhere), Err(Error::Io { .. })));
}

also_on_gpu!(a_map_of_tensors_round_trips);
