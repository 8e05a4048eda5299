//! The fifteen element types.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name is its own documentation")]
// As wide as a pointer, so that the structs that hold a dtype have no padding. Padding of 7 bytes is
// moved by two loads that overlap, and the second waits for the stores of both.
#[repr(u64)]
pub enum DType {
    Bool,
    U8,
    I8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
}

/// The kind of a dtype, for rules that depend only on the kind. Kinds are ordered from narrow to
/// wide.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Kind {
    Bool,
    Integer,
    Float,
    Complex,
}

impl DType {
    /// All dtypes, in the order of the documentation.
    pub const ALL: [DType; 15] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// The name in Python, files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::U16 => "uint16",
            DType::I32 => "int32",
            DType::U32 => "uint32",
            DType::I64 => "int64",
            DType::U64 => "uint64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
        }
    }

    /// The size of one element in bytes: 1, 2, 4, 8 or 16.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// The kind: bool, integer, float or complex.
    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Kind::Float,
            DType::C64 | DType::C128 => Kind::Complex,
            _ => Kind::Integer,
        }
    }

    /// Whether this is one of the eight integer dtypes; `bool` is not.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Integer)
    }

    /// Whether numbers of this dtype have gradients. Floats and complex numbers do.
    pub const fn is_differentiable(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::Complex)
    }

    /// Whether this is an unsigned integer.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// The smallest and the largest value of an integer dtype.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        if !self.is_integer() {
            return None;
        }
        let bits = self.size() * 8;
        Some(if self.is_unsigned() {
            (0, (1 << bits) - 1)
        } else {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Reads [`DType::name`].
///
/// ```
/// use inlay_core::DType;
///
/// assert_eq!("float32".parse(), Ok(DType::F32));
/// let error = "float8".parse::<DType>().expect_err("there is no such dtype");
/// assert!(error.to_string().starts_with("parse: dtype is \"float8\", expected one of bool, "));
/// ```
impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        found.ok_or_else(|| {
            let expected = format!("one of {}", DType::ALL.map(DType::name).join(", "));
            Error::Argument { op: "parse", arg: "dtype", got: format!("{name:?}"), expected }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
        }
        let error = "float8".parse::<DType>().expect_err("there is no such dtype").to_string();
        assert!(DType::ALL.iter().all(|dtype| error.contains(dtype.name())), "{error}");
    }

    #[test]
    fn integer_ranges_match_the_rust_types() {
        assert_eq!(DType::I8.integer_range(), Some((-128, 127)));
        assert_eq!(DType::U64.integer_range(), Some((0, u64::MAX as i128)));
        assert_eq!(DType::I64.integer_range(), Some((i64::MIN as i128, i64::MAX as i128)));
        assert_eq!(DType::F32.integer_range(), None);
    }
}
