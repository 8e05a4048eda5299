//! One size of a shape: a number, or a symbol for a size that is not known yet.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// A size that is not known yet. Equal symbols stand for the same size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Symbol(u64);

impl Symbol {
    /// Returns a symbol that differs from all others.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Symbol(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the symbol with a given number. Files number their symbols themselves.
    pub fn numbered(number: u64) -> Self {
        Symbol(number)
    }

    /// The number of the symbol.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// One dimension of a shape that is being inferred.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Dim {
    /// A known size.
    Known(usize),
    /// A size that depends on values, or on inputs that are not given yet.
    Symbol(Symbol),
}

impl Dim {
    /// Returns a dimension about which nothing is known.
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

    /// Whether both can be the same size. Returns false only if they certainly differ.
    pub fn may_equal(self, other: Dim) -> bool {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => a == b,
            _ => true,
        }
    }

    /// Applies `f` to the size. If the size is not known, returns a fresh symbol.
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
