//! `Serialize` and `Deserialize` for tensors, with the feature `serde`.
//!
//! A tensor is a struct of its `dtype`, its `shape`, and its `data`: the bytes of the elements in
//! row-major order, little-endian. Its device and its gradient history are not part of it. Reading
//! trusts nothing: the shape must need exactly the bytes that came, and memory is allocated only
//! for these.

use std::borrow::Cow;
use std::fmt;

use ::serde::de::{self, SeqAccess, Visitor};
use ::serde::ser::{self, SerializeStruct};
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};
use inlay_core::DType;

use super::byte_order::little_endian;
use crate::Tensor;

/// The most bytes that are allocated before they are read, if a format announces their number.
const ANNOUNCED: usize = 4096;

/// Writes the dtype, the shape and the bytes. A symbolic tensor is an error.
///
/// ```
/// # use inlay::Tensor;
/// let x = Tensor::from_vec(vec![1u8, 2, 3], &[3])?;
/// let text = serde_json::to_string(&x).expect("a tensor with elements");
/// assert_eq!(text, r#"{"dtype":"U8","shape":[3],"data":[1,2,3]}"#);
/// let back: Tensor = serde_json::from_str(&text).expect("what was just written");
/// assert_eq!(back.to_vec::<u8>()?, [1, 2, 3]);
/// # Ok::<(), inlay::Error>(())
/// ```
impl Serialize for Tensor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let contents = self.contents("serialize").map_err(ser::Error::custom)?;
        let data = Data(little_endian(contents.bytes(), self.dtype()));
        let mut fields = serializer.serialize_struct("Tensor", 3)?;
        fields.serialize_field("dtype", &self.dtype())?;
        fields.serialize_field("shape", self.shape())?;
        fields.serialize_field("data", &data)?;
        fields.end()
    }
}

/// Reads a tensor to the current device. A shape that needs another number of bytes is an error.
impl<'de> Deserialize<'de> for Tensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Fields { dtype, shape, data } = Fields::deserialize(deserializer)?;
        Tensor::from_bytes(&little_endian(&data.0, dtype), &shape, dtype).map_err(de::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(rename = "Tensor")]
struct Fields<'a> {
    dtype: DType,
    shape: Vec<usize>,
    #[serde(borrow)]
    data: Data<'a>,
}

/// Bytes, which formats store more compactly than a list of numbers.
struct Data<'a>(Cow<'a, [u8]>);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Data<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Takes bytes in each form in which formats give them.
struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Data<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a tensor")
    }

    fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> Result<Data<'de>, E> {
        Ok(Data(Cow::Borrowed(bytes)))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Data<'de>, E> {
        Ok(Data(Cow::Owned(bytes.to_vec())))
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Data<'de>, E> {
        Ok(Data(Cow::Owned(bytes)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Data<'de>, A::Error> {
        let announced = numbers.size_hint().unwrap_or(0).min(ANNOUNCED);
        let mut bytes = Vec::with_capacity(announced);
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        Ok(Data(Cow::Owned(bytes)))
    }
}
