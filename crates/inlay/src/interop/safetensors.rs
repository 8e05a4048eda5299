//! Tensors in safetensors files, with the feature `safetensors`.
//!
//! [`save`] and [`load`] write and read a file of named tensors. For other uses, such as files with
//! metadata, a [`View`] makes a tensor an argument of `safetensors::serialize`, and a
//! `safetensors::tensor::TensorView` converts to a tensor. The format has no `complex128`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use ::safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use inlay_core::{DType, Error, Result};

use super::byte_order::little_endian;
use crate::Tensor;
use crate::data::Contents;

/// A tensor as an argument of `safetensors::serialize`.
///
/// It borrows the elements, as [`Tensor::with_slice`] does, or has a copy of them. While it exists,
/// this thread can't write the tensor, and writes of other threads wait.
///
/// ```
/// use inlay::interop::safetensors::View;
/// # use inlay::Tensor;
/// # use safetensors::SafeTensors;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], &[2])?;
/// let file = safetensors::serialize([("x", View::try_from(&x)?)], None).expect("a short header");
/// let tensors = SafeTensors::deserialize(&file).expect("what was just written");
/// let back = Tensor::try_from(tensors.tensor("x").expect("its name"))?;
/// assert_eq!(back.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
pub struct View<'a> {
    tensor: &'a Tensor,
    dtype: Dtype,
    contents: Contents<'a>,
}

impl<'a> TryFrom<&'a Tensor> for View<'a> {
    type Error = Error;

    fn try_from(tensor: &'a Tensor) -> Result<Self> {
        let (op, arg, got) = ("safetensors", "self", tensor.dtype());
        let expected = "a dtype of safetensors, which are all but complex128";
        let dtype = DTYPES.iter().find(|(dtype, _)| *dtype == got);
        let (_, dtype) = *dtype.ok_or(Error::DType { op, arg, got, expected })?;
        Ok(View { tensor, dtype, contents: tensor.contents(op)? })
    }
}

impl ::safetensors::View for View<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.tensor.shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        little_endian(self.contents.bytes(), self.tensor.dtype())
    }

    fn data_len(&self) -> usize {
        self.contents.bytes().len()
    }
}

/// Copies the tensor of a file to the current device. A dtype that Inlay does not have, such as
/// `F8_E4M3`, is an error.
impl TryFrom<&TensorView<'_>> for Tensor {
    type Error = Error;

    fn try_from(view: &TensorView<'_>) -> Result<Self> {
        let dtype = DTYPES.iter().find(|(_, dtype)| *dtype == view.dtype());
        let unknown = || Error::Argument {
            op: "safetensors",
            arg: "tensor",
            got: format!("of dtype {}", view.dtype()),
            expected: "a dtype that Inlay has; it has no floats of fewer than 16 bits".into(),
        };
        let (dtype, _) = *dtype.ok_or_else(unknown)?;
        Tensor::from_bytes(&little_endian(view.data(), dtype), view.shape(), dtype)
    }
}

/// As the conversion of `&TensorView`.
impl TryFrom<TensorView<'_>> for Tensor {
    type Error = Error;

    fn try_from(view: TensorView<'_>) -> Result<Self> {
        Tensor::try_from(&view)
    }
}

/// Writes named tensors to a file.
///
/// ```
/// # use std::collections::BTreeMap;
/// use inlay::{DType, Tensor, interop::safetensors};
/// # let path = std::env::temp_dir().join(format!("inlay-{}.safetensors", std::process::id()));
/// let weights = BTreeMap::from([("w", Tensor::ones(&[2, 3], DType::BF16)?)]);
/// safetensors::save(&weights, &path)?;
/// let loaded = safetensors::load(&path)?;
/// assert_eq!((loaded["w"].shape(), loaded["w"].dtype()), (&[2, 3][..], DType::BF16));
/// # std::fs::remove_file(&path).expect("it was just written");
/// # Ok::<(), inlay::Error>(())
/// ```
///
/// # Errors
/// A file that can't be written, a dtype that the format does not have, or a symbolic tensor.
pub fn save<'a, N: AsRef<str> + Ord + Display>(
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
    path: impl AsRef<Path>,
) -> Result<()> {
    let views = tensors.into_iter().map(|(name, tensor)| Ok((name, View::try_from(tensor)?)));
    let views = views.collect::<Result<Vec<_>>>()?;
    let (op, path) = ("safetensors::save", path.as_ref());
    ::safetensors::serialize_to_file(views, None, path).map_err(|error| match error {
        SafeTensorError::IoError(source) => io_error(op, path, source),
        error => failed(op, &error),
    })
}

/// Reads all tensors of a file to the current device. [`save`] has an example.
///
/// ```no_run
/// let tensors = inlay::interop::safetensors::load("model.safetensors")?;
/// # Ok::<(), inlay::Error>(())
/// ```
///
/// # Errors
/// A file that can't be read or is malformed, or a dtype that Inlay does not have.
pub fn load(path: impl AsRef<Path>) -> Result<BTreeMap<String, Tensor>> {
    let op = "safetensors::load";
    let path = path.as_ref();
    let io_error =
        |source: std::io::Error| Error::Io { op, path: path.into(), source: source.into() };
    let file = std::fs::read(path).map_err(io_error)?;
    let tensors = SafeTensors::deserialize(&file).map_err(|error| failed(op, &error))?;
    tensors.iter().map(|(name, view)| Ok((name.to_owned(), Tensor::try_from(view)?))).collect()
}

fn io_error(op: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io { op, path: path.into(), source: source.into() }
}

fn failed(op: &'static str, error: &dyn std::error::Error) -> Error {
    Error::File { op, problem: error.to_string() }
}

/// The dtypes that both have.
const DTYPES: [(DType, Dtype); 14] = [
    (DType::Bool, Dtype::BOOL),
    (DType::U8, Dtype::U8),
    (DType::I8, Dtype::I8),
    (DType::I16, Dtype::I16),
    (DType::U16, Dtype::U16),
    (DType::I32, Dtype::I32),
    (DType::U32, Dtype::U32),
    (DType::I64, Dtype::I64),
    (DType::U64, Dtype::U64),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
    (DType::C64, Dtype::C64),
];
