//! The enums that operations and kernels share for what is done with values.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{DType, Error, Kind, Result};

/// How several values for one place are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Reduce {
    /// The sum. For bool, the logical or.
    Sum,
    /// The product. For bool, the logical and.
    Mul,
    /// The sum divided by the count, rounded down for integers.
    Mean,
    /// The largest value, or NaN if one is NaN.
    Amax,
    /// The smallest value, or NaN if one is NaN.
    Amin,
}

impl Reduce {
    /// The names that [`Reduce::from_name`] accepts, for messages.
    pub const NAMES: &str = "sum, mul, mean, amax, amin (or add, prod, multiply, max, min)";

    /// Returns the reduction with this name.
    pub fn from_name(name: &str) -> Option<Reduce> {
        Some(match name {
            "sum" | "add" => Reduce::Sum,
            "mul" | "prod" | "multiply" => Reduce::Mul,
            "mean" => Reduce::Mean,
            "amax" | "max" => Reduce::Amax,
            "amin" | "min" => Reduce::Amin,
            _ => return None,
        })
    }

    /// The main name of the reduction.
    pub fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Mul => "mul",
            Reduce::Mean => "mean",
            Reduce::Amax => "amax",
            Reduce::Amin => "amin",
        }
    }

    /// Whether the reduction is defined for `dtype`: bool has no mean, complex numbers have no
    /// order.
    pub fn is_defined_for(self, dtype: DType) -> bool {
        match self {
            Reduce::Sum | Reduce::Mul => true,
            Reduce::Mean => dtype != DType::Bool,
            Reduce::Amax | Reduce::Amin => dtype.kind() != Kind::Complex,
        }
    }
}

/// Reads any of the names in [`Reduce::NAMES`].
///
/// ```
/// use inlay_core::Reduce;
///
/// assert_eq!("add".parse(), Ok(Reduce::Sum));
/// assert_eq!("max".parse(), Ok(Reduce::Amax));
/// let error = "median".parse::<Reduce>().expect_err("there is no such reduction");
/// assert!(error.to_string().contains("expected one of sum, mul, mean, amax, amin"));
/// ```
impl FromStr for Reduce {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Reduce::from_name(name).ok_or_else(|| {
            let (got, expected) = (format!("{name:?}"), format!("one of {}", Reduce::NAMES));
            Error::Argument { op: "parse", arg: "reduction", got, expected }
        })
    }
}

impl fmt::Display for Reduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a scatter does at each place that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Combine {
    /// The last value wins.
    Assign,
    /// The values are reduced, with or without the old value of the place.
    Reduce {
        /// The reduction.
        reduce: Reduce,
        /// Whether the old value takes part.
        include_self: bool,
    },
}

/// Arithmetic of two tensors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// Comparison of two tensors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// Equal, or both NaN.
    Same,
}

impl Comparison {
    /// Whether it needs an order, which complex numbers don't have.
    pub fn is_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual | Comparison::Same)
    }
}

/// A triangle of a matrix, including the diagonal that bounds it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Triangle {
    /// The entries on and below the diagonal.
    Lower,
    /// The entries on and above the diagonal.
    Upper,
}

/// A reduction of all elements along axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Fold {
    Sum,
    Mean,
    Prod,
    Amax,
    Amin,
}

/// An operation on each element alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Unary {
    /// The number with the opposite sign. Integers wrap.
    Negative,
    /// The complex conjugate. Real numbers are unchanged.
    Conjugate,
}
