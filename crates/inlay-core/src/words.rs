//! The words that operations and kernels share for what is done with values.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{DType, Kind};

/// How values that meet at one place become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Reduce {
    /// Their sum; or, for bool.
    Sum,
    /// Their product; and, for bool.
    Mul,
    /// Their sum divided by their count, rounding down for integers.
    Mean,
    /// The largest; NaN if one is.
    Amax,
    /// The smallest; NaN if one is.
    Amin,
}

impl Reduce {
    /// The names that [`Reduce::from_name`] takes, for messages.
    pub const NAMES: &str = "sum, mul, mean, amax, amin (or add, prod, multiply, max, min)";

    /// The reduction of a name.
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

    /// The first of its names.
    pub fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Mul => "mul",
            Reduce::Mean => "mean",
            Reduce::Amax => "amax",
            Reduce::Amin => "amin",
        }
    }

    /// Whether numbers of `dtype` reduce so: bool has no mean, complex numbers no order.
    pub fn is_defined_for(self, dtype: DType) -> bool {
        match self {
            Reduce::Sum | Reduce::Mul => true,
            Reduce::Mean => dtype != DType::Bool,
            Reduce::Amax | Reduce::Amin => dtype.kind() != Kind::Complex,
        }
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
    /// The values are reduced, with what was there before or without.
    Reduce {
        /// How.
        reduce: Reduce,
        /// Whether what was there before takes part.
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
    /// Whether it asks for an order, which complex numbers don't have.
    pub fn is_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual | Comparison::Same)
    }
}

/// Which triangle of a matrix: the diagonal that bounds it belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

/// How all elements along axes become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name is its own documentation")]
pub enum Fold {
    Sum,
    Mean,
    Prod,
    Amax,
    Amin,
}

/// What is done with each element alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Unary {
    /// The number with the other sign; integers wrap.
    Negative,
    /// The complex conjugate; real numbers are their own.
    Conjugate,
}
