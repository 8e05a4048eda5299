//! Conversions from and to the tensors of Candle, with the feature `candle`.

use candle_core::{DType as CandleDType, Device as CandleDevice, Tensor as CandleTensor};
use half::{bf16, f16};
use inlay_core::{DType, Error, Result};

use crate::Tensor;

/// Implements both conversions for the dtypes that both libraries have.
macro_rules! conversions {
    ($($dtype:ident: $t:ty),*) => {
        /// Copies the elements to the current device, without their gradient history. The 8-bit and
        /// smaller floats are errors.
        ///
        /// ```
        /// # use candle_core::{Device, Tensor as CandleTensor};
        /// # use inlay::Tensor;
        /// let theirs = CandleTensor::new(&[[1.0f32, 2.0], [3.0, 4.0]], &Device::Cpu).expect("small");
        /// let ours = Tensor::try_from(&theirs)?;
        /// assert_eq!((ours.shape(), ours.to_vec::<f32>()?), (&[2, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
        /// let back = CandleTensor::try_from(&ours)?;
        /// assert_eq!(back.dims(), [2, 2]);
        /// # Ok::<(), inlay::Error>(())
        /// ```
        impl TryFrom<&CandleTensor> for Tensor {
            type Error = Error;

            fn try_from(tensor: &CandleTensor) -> Result<Self> {
                let op = "from_candle";
                let failed = |error| refused(op, &error);
                match tensor.dtype() {
                    $(CandleDType::$dtype => {
                        let flat = tensor.flatten_all().map_err(failed)?;
                        Tensor::from_vec(flat.to_vec1::<$t>().map_err(failed)?, tensor.dims())
                    })*
                    other => {
                        let got = format!("of dtype {}", other.as_str());
                        let expected = "a dtype that Inlay has; cast it first".into();
                        Err(Error::Argument { op, arg: "tensor", got, expected })
                    }
                }
            }
        }

        /// Copies the elements to Candle's CPU device, without their gradient history. Candle has
        /// no bools, no complex numbers, and not all integers; these are errors.
        impl TryFrom<&Tensor> for CandleTensor {
            type Error = Error;

            fn try_from(tensor: &Tensor) -> Result<Self> {
                let op = "to_candle";
                match tensor.dtype() {
                    $(DType::$dtype => {
                        CandleTensor::from_vec(tensor.to_vec::<$t>()?, tensor.shape(), &CandleDevice::Cpu)
                            .map_err(|error| refused(op, &error))
                    })*
                    got => {
                        let expected = "a dtype that Candle has; cast it first";
                        Err(Error::DType { op, arg: "self", got, expected })
                    }
                }
            }
        }
    };
}
conversions!(
    U8: u8, U32: u32, I16: i16, I32: i32, I64: i64, BF16: bf16, F16: f16, F32: f32, F64: f64
);

/// As the conversion of `&Tensor`.
impl TryFrom<Tensor> for CandleTensor {
    type Error = Error;

    fn try_from(tensor: Tensor) -> Result<Self> {
        CandleTensor::try_from(&tensor)
    }
}

/// As the conversion of `&CandleTensor`.
impl TryFrom<CandleTensor> for Tensor {
    type Error = Error;

    fn try_from(tensor: CandleTensor) -> Result<Self> {
        Tensor::try_from(&tensor)
    }
}

/// Returns an error of Candle, such as one of its device.
fn refused(op: &'static str, error: &candle_core::Error) -> Error {
    let (got, expected) = (error.to_string(), "a tensor whose elements can be copied".to_owned());
    Error::Argument { op, arg: "tensor", got, expected }
}
