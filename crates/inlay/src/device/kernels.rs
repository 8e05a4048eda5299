//! The kernels beyond copies, each called where its arrays are.

use inlay_core::{
    Arithmetic, Combine, Comparison, DType, Error, Fold, Layout, Result, Triangle, Unary,
};

#[cfg(feature = "gpu")]
use super::gpu;
use super::{Elements, Index, cpu};
use crate::array::Array;
use crate::memory::Buffer;

/// An index that was checked and counted from the front.
pub(crate) enum Positions {
    Cpu(cpu::Positions),
    #[cfg(feature = "gpu")]
    Gpu(gpu::Positions),
}

/// A mask that was counted.
pub(crate) enum Bits {
    Cpu(cpu::Bits),
    #[cfg(feature = "gpu")]
    Gpu(gpu::Bits),
}

/// Calls a function where `$by`, which is among its arguments, is.
macro_rules! by {
    ($by:ident: $kind:ident, $function:ident($($arg:expr),*)) => {
        match $by {
            $kind::Cpu($by) => cpu::$function($($arg),*),
            #[cfg(feature = "gpu")]
            $kind::Gpu($by) => gpu::$function($($arg),*),
        }
    };
}

// Rows and elements

/// The index, checked against `size` and copied out of reach.
pub(crate) fn positions(
    op: &'static str,
    arg: &'static str,
    index: &Array,
    axis: usize,
    size: usize,
) -> Result<Positions> {
    match &index.buffer {
        Buffer::Cpu(_) => cpu::positions(op, arg, index, axis, size).map(Positions::Cpu),
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => gpu::positions(op, arg, index, axis, size).map(Positions::Gpu),
    }
}

/// Writes positions to the fresh `to` of i64.
pub(crate) fn store_positions(to: &Array, index: &Positions) -> Result<()> {
    match index {
        Positions::Cpu(index) => cpu::store(to, index.values()),
        #[cfg(feature = "gpu")]
        Positions::Gpu(index) => gpu::store_positions(to, index),
    }
}

/// Fails unless each of `from` names an earlier row (backwards: a later one), or their number.
pub(crate) fn expect_chain(op: &'static str, from: &Positions, backwards: bool) -> Result<()> {
    by!(from: Positions, expect_chain(op, from, backwards))
}

pub(super) fn broken_chain(op: &'static str) -> Error {
    let (got, expected) = ("a row that is not done".into(), "one that is".into());
    Error::Argument { op, arg: "from", got, expected }
}

/// `to[i] = from[index[i]]` along `axis`.
pub(crate) fn gather_rows(to: &Array, from: &Array, axis: usize, index: &Positions) -> Result<()> {
    by!(index: Positions, gather_rows(to, from, axis, index))
}

/// `to = base; to[index[i]] (combine)= updates[i]` along `axis`.
pub(crate) fn scatter_rows(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    index: Index<'_>,
    updates: &Array,
    combine: Combine,
) -> Result<()> {
    at!(to, scatter_rows(to, base, axis, index, updates, combine))
}

/// `to[.., j, ..] = from[.., index[.., j, ..], ..]` along `axis`, where `to` is fresh; `entries`
/// stretches the index to its shape.
pub(crate) fn gather_elements(
    to: &Array,
    from: &Array,
    axis: usize,
    index: Index<'_>,
    entries: &Layout,
) -> Result<()> {
    at!(to, gather_elements(to, from, axis, index, entries))
}

/// `to = base; to[.., index[.., j, ..], ..] (combine)= values[.., j, ..]` along `axis`; the index is
/// stretched to the shape of `values`.
pub(crate) fn scatter_elements(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    index: Elements<'_>,
    values: &Array,
    combine: Combine,
) -> Result<()> {
    at!(to, scatter_elements(to, base, axis, index, values, combine))
}

/// Whether each entry is the last one along `axis` that names its one of `places`, as bool to `to`.
pub(crate) fn winning_elements(
    to: &Array,
    index: &Positions,
    axis: usize,
    places: usize,
) -> Result<()> {
    by!(index: Positions, winning_elements(to, index, axis, places))
}

// Masks

/// The mask, counted and copied out of reach.
pub(crate) fn bits(mask: &Array) -> Result<Bits> {
    match &mask.buffer {
        Buffer::Cpu(_) => cpu::bits(mask).map(Bits::Cpu),
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => gpu::bits(mask).map(Bits::Gpu),
    }
}

impl Bits {
    /// How many are true; a GPU is waited for.
    pub(crate) fn ones(&self) -> Result<usize> {
        match self {
            Bits::Cpu(bits) => Ok(bits.ones()),
            #[cfg(feature = "gpu")]
            Bits::Gpu(bits) => bits.ones(),
        }
    }

    /// Fails when more are true than a source, called `arg`, has elements.
    pub(crate) fn expect_source(
        &self,
        op: &'static str,
        arg: &'static str,
        have: usize,
    ) -> Result<()> {
        let short = move |need| Error::SourceTooShort { op, arg, have, need };
        match self {
            Bits::Cpu(bits) if have < bits.ones() => Err(short(bits.ones())),
            Bits::Cpu(_) => Ok(()),
            #[cfg(feature = "gpu")]
            Bits::Gpu(bits) => bits.expect_at_most(have, Box::new(short)),
        }
    }
}

/// `to = base`, but the k-th true place takes the k-th element of the contiguous `source`.
pub(crate) fn expand(to: &Array, base: Option<&Array>, bits: &Bits, source: &Array) -> Result<()> {
    by!(bits: Bits, expand(to, base, bits, source))
}

/// `to` takes the true places of `from` in order.
pub(crate) fn compress(to: &Array, from: &Array, bits: &Bits) -> Result<()> {
    by!(bits: Bits, compress(to, from, bits))
}

// Triangles

/// Rows and columns of the triangle's entries, to `to`.
pub(crate) fn triangle_indices(
    to: &Array,
    triangle: Triangle,
    shape: (usize, usize),
    offset: i64,
) -> Result<()> {
    at!(to, triangle_indices(to, triangle, shape, offset))
}

/// `to` is the triangle of `from`, and 0 beside it.
pub(crate) fn keep_triangle(
    to: &Array,
    from: &Array,
    triangle: Triangle,
    offset: i64,
) -> Result<()> {
    at!(to, keep_triangle(to, from, triangle, offset))
}

// Element by element

/// `to = a (op) b`.
pub(crate) fn arithmetic(op: Arithmetic, to: &Array, a: &Array, b: &Array) -> Result<()> {
    at!(to, arithmetic(op, to, a, b))
}

/// `to = op(a)`.
pub(crate) fn unary(op: Unary, to: &Array, a: &Array) -> Result<()> {
    at!(to, unary(op, to, a))
}

/// `to = a (op) b`, as bool.
pub(crate) fn compare(op: Comparison, to: &Array, a: &Array, b: &Array) -> Result<()> {
    at!(to, compare(op, to, a, b))
}

/// `to = if condition { a } else { b }`; without `b`, `to` keeps what it has.
pub(crate) fn select(to: &Array, condition: &Array, a: &Array, b: Option<&Array>) -> Result<()> {
    at!(to, select(to, condition, a, b))
}

/// `to = from`, in the dtype of `to`.
fn cast(to: &Array, from: &Array) -> Result<()> {
    at!(to, cast(to, from))
}

/// A fresh contiguous copy in another dtype.
pub(crate) fn to_dtype(op: &'static str, array: &Array, dtype: DType) -> Result<Array> {
    let fresh = Array::on(array.buffer.device(), op, dtype, array.shape())?;
    cast(&fresh, array)?;
    Ok(fresh)
}

// Reductions

/// `to` is the fold of `from` over the axes for which `over` is true.
pub(crate) fn fold(how: Fold, to: &Array, from: &Array, over: &[bool]) -> Result<()> {
    at!(to, fold(how, to, from, over))
}

/// `to[i] = a[i] + c[i] * to[from[i]]` along `axis`.
pub(crate) fn scan_rows(
    to: &Array,
    a: &Array,
    c: &Array,
    axis: usize,
    from: &Positions,
    backwards: bool,
) -> Result<()> {
    by!(from: Positions, scan_rows(to, a, c, axis, from, backwards))
}

/// `to[i]` is the gradient `g` of the place of row `i`, times all factors of the place but `x[i]`:
/// the other rows of `x`, and `first`.
pub(crate) fn products_of_others(
    to: &Array,
    g: &Array,
    x: &Array,
    first: Option<&Array>,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    by!(index: Positions, products_of_others(to, g, x, first, axis, index))
}

/// `to` is the gradient `g`, times all rows of `x` that name its place.
pub(crate) fn products_of_all(
    to: &Array,
    g: &Array,
    x: &Array,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    by!(index: Positions, products_of_all(to, g, x, axis, index))
}

/// `to[i]` is the entry before or after `i` that names the same of `places`.
pub(crate) fn neighbours(
    to: &Array,
    index: &Positions,
    places: usize,
    backwards: bool,
) -> Result<()> {
    by!(index: Positions, neighbours(to, index, places, backwards))
}
