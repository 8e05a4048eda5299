//! One size of a shape: a number, or a symbol that gets its number later.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// A size that is not known yet. Two equal symbols stand for one size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Symbol(u64);

impl Symbol {
    /// A symbol that equals no other.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Symbol(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The symbol of a number, for files, which count their own.
    pub fn numbered(number: u64) -> Self {
        Symbol(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// One dimension of a shape that is being inferred.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Dim {
    /// The size.
    Known(usize),
    /// A size that depends on data or on inputs that have not come.
    Symbol(Symbol),
}

impl Dim {
    /// A dimension about which nothing is known.
    pub fn unknown() -> Self {
        Dim::Symbol(Symbol::fresh())
    }

    /// The size, if it is known.
    pub fn known(self) -> Option<usize> {
        match self {
            Dim::Known(size) => Some(size),
            Dim::Symbol(_) => None,
        }
    }

    /// Whether both can be the same size: false only when they certainly differ.
    pub fn may_equal(self, other: Dim) -> bool {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => a == b,
            _ => true,
        }
    }

    /// The size after `f`, or a fresh symbol when the size is not known.
    pub fn map(self, f: impl FnOnce(usize) -> usize) -> Dim {
        self.known().map_or_else(Dim::unknown, |size| Dim::Known(f(size)))
    }
}

impl From<usize> for Dim {
    fn from(size: usize) -> Self {
        Dim::Known(size)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(size) => size.fmt(f),
            Dim::Symbol(_) => f.write_str("?"),
        }
    }
}
