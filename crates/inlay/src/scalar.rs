//! Plain numbers: they take the dtype of the tensor that they are used with.

use inlay_core::{DType, Error, Kind, Layout, Result};
use inlay_cpu::Element;
use inlay_cpu::rounding::{bf16_from_f64, f16_from_f64, f64_from_i128};
use num_complex::{Complex32, Complex64};

use crate::array::Array;
use crate::memory::Buffer;
use crate::{Tensor, bf16, f16};

/// A number that takes any dtype of the same or a wider kind. A bool fits every dtype, an integer
/// every number dtype whose range includes it, and a float the float and complex dtypes.
///
/// ```
/// use inlay::{DType, Scalar, Tensor};
///
/// assert_eq!(Scalar::from(7u8), Scalar::Int(7));
/// assert_eq!(Scalar::from(0.5f32), Scalar::Float(0.5));
/// // Where a number is expected, any of Rust's types will do.
/// let x = Tensor::full([2], 7usize, DType::F32)?;
/// assert_eq!(x.to_vec::<f32>()?, [7.0, 7.0]);
/// # Ok::<(), inlay::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Scalar {
    Bool(bool),
    Int(i128),
    Float(f64),
    Complex(Complex64),
}

impl Scalar {
    /// The default dtype of the number as a tensor. Floats become `float32`.
    ///
    /// ```
    /// # use inlay::{DType, Scalar};
    /// assert_eq!(Scalar::from(1).dtype(), DType::I64);
    /// assert_eq!(Scalar::from(1.0).dtype(), DType::F32);
    /// ```
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F32,
            Scalar::Complex(_) => DType::C64,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Scalar::Bool(_) => Kind::Bool,
            Scalar::Int(_) => Kind::Integer,
            Scalar::Float(_) => Kind::Float,
            Scalar::Complex(_) => Kind::Complex,
        }
    }

    fn kind_name(self) -> &'static str {
        match self {
            Scalar::Bool(_) => "bool",
            Scalar::Int(_) => "int",
            Scalar::Float(_) => "float",
            Scalar::Complex(_) => "complex",
        }
    }

    fn int(self) -> i128 {
        match self {
            Scalar::Bool(value) => i128::from(value),
            Scalar::Int(value) => value,
            Scalar::Float(_) | Scalar::Complex(_) => 0,
        }
    }

    /// Returns the number as a complex number, such that a conversion to `dtype` rounds only once.
    fn complex(self, dtype: DType) -> Complex64 {
        match self {
            Scalar::Float(value) => value.into(),
            Scalar::Complex(value) => value,
            _ if matches!(dtype, DType::F64 | DType::C128) => (self.int() as f64).into(),
            _ => f64_from_i128(self.int()).into(),
        }
    }

    /// Returns a 0-D tensor of `dtype`. Errors name `op` and `arg`.
    pub(crate) fn to_tensor(
        self,
        op: &'static str,
        arg: &'static str,
        dtype: DType,
    ) -> Result<Tensor> {
        if self.kind() > dtype.kind() {
            return Err(Error::Scalar { op, arg, got: self.kind_name(), dtype });
        }
        if let Some((low, high)) = dtype.integer_range() {
            let value = self.int();
            if value < low || value > high {
                return Err(Error::Argument {
                    op,
                    arg,
                    got: value.to_string(),
                    expected: format!("a value of {dtype}: {low} to {high}"),
                });
            }
        }
        let Complex64 { re, im } = self.complex(dtype);
        let n = self.int();
        match dtype {
            DType::Bool => single(n != 0),
            DType::U8 => single(n as u8),
            DType::I8 => single(n as i8),
            DType::U16 => single(n as u16),
            DType::I16 => single(n as i16),
            DType::U32 => single(n as u32),
            DType::I32 => single(n as i32),
            DType::U64 => single(n as u64),
            DType::I64 => single(n as i64),
            DType::F16 => single(f16_from_f64(re)),
            DType::BF16 => single(bf16_from_f64(re)),
            DType::F32 => single(re as f32),
            DType::F64 => single(re),
            DType::C64 => single(Complex32::new(re as f32, im as f32)),
            DType::C128 => single(Complex64::new(re, im)),
        }
    }
}

/// Returns a 0-D tensor on the CPU, which can be used with tensors on any device.
pub(crate) fn single<T: Element>(value: T) -> Result<Tensor> {
    let buffer = Buffer::Cpu(inlay_cpu::Buffer::single(value)?);
    Ok(Tensor::from_array(Array { buffer, layout: Layout::single(), dtype: T::DTYPE }))
}

macro_rules! from {
    ($($variant:ident($value:ident => $wide:expr): $($type:ty)*;)*) => { $($(
        impl From<$type> for Scalar {
            fn from($value: $type) -> Self {
                Scalar::$variant($wide)
            }
        }
    )*)* };
}
from! {
    Bool(value => value): bool;
    Int(value => value as i128): i8 i16 i32 i64 i128 isize u8 u16 u32 u64 usize;
    Float(value => value): f64;
    Float(value => value.into()): f16 bf16 f32;
    Complex(value => value): Complex64;
    Complex(value => Complex64::new(value.re.into(), value.im.into())): Complex32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_integers_round_once() {
        let value = Scalar::Int((1 << 60) + (1 << 36) + 1);
        let single = value.to_tensor("test", "value", DType::F32).expect("fits");
        assert_eq!(single.to_vec::<f32>(), Ok(vec![((1i128 << 60) + (1 << 36) + 1) as f32]));
        let double = value.to_tensor("test", "value", DType::F64).expect("fits");
        assert_eq!(double.to_vec::<f64>(), Ok(vec![((1i128 << 60) + (1 << 36) + 1) as f64]));
    }

    #[test]
    fn numbers_keep_their_kind_and_range() {
        let refused = |value: Scalar, dtype| value.to_tensor("test", "value", dtype).is_err();
        assert!(refused(Scalar::Float(1.0), DType::I32));
        assert!(refused(Scalar::Int(1), DType::Bool));
        assert!(refused(Scalar::Int(256), DType::U8));
        assert!(refused(Complex64::new(0.0, 1.0).into(), DType::F64));
        assert!(!refused(Scalar::Bool(true), DType::C64));
    }
}
