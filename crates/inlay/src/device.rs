//! The seam between operations and devices: the list of kernels, on arrays.
//!
//! Each function locks the memory it uses, in the order of addresses so that two calls can't wait
//! for each other, and hands views to the kernel.

use inlay_core::{Arithmetic, Combine, Comparison, DType, Fold, Layout, Result, Triangle, Unary};
pub(crate) use inlay_cpu::kernels::{Bits, Comb, Positions, triangle_largest, triangle_len};
use inlay_cpu::memory::{Read, Write};
use inlay_cpu::{Buffer, Dst, Element, Src, kernels};
use smallvec::SmallVec;

use crate::array::Array;

enum Lock<'a> {
    Read(Read<'a>),
    Write(Write<'a>),
}

/// Locks of different buffers; every buffer that a view is asked of is among them.
struct Locks<'a>(SmallVec<[Lock<'a>; 5]>);

impl<'a> Locks<'a> {
    // Inlined, so that the guards are made where they stay.
    #[inline(always)]
    fn new(target: Option<&'a Buffer>, base: Option<&'a Array>, sources: &[&'a Array]) -> Self {
        let mut locks = Locks(SmallVec::new());
        let (own, mut last) = (target.map_or(0, Buffer::id), 0);
        // They are few: it takes less to look for the next one again than to keep them in order.
        loop {
            let mut next = target.filter(|_| own > last).map(|target| (own, target));
            for array in base.iter().chain(sources) {
                let id = array.buffer.id();
                if id > last && next.is_none_or(|(next, _)| id < next) {
                    next = Some((id, &array.buffer));
                }
            }
            let Some((id, buffer)) = next else { return locks };
            last = id;
            locks.0.push(match id == own {
                true => Lock::Write(buffer.write()),
                false => Lock::Read(buffer.read()),
            });
        }
    }

    #[inline]
    fn src<'s>(&'s self, array: &'s Array) -> Result<Src<'s>> {
        for lock in &self.0 {
            match lock {
                Lock::Read(read) if read.buffer().same_as(&array.buffer) => {
                    return read.src(&array.layout, array.dtype);
                }
                Lock::Write(write) if write.buffer().same_as(&array.buffer) => {
                    return write.src(&array.layout, array.dtype);
                }
                _ => {}
            }
        }
        unreachable!("every source was locked")
    }

    fn dst<'s>(&'s self, layout: &'s Layout, dtype: DType) -> Result<Dst<'s>> {
        for lock in &self.0 {
            if let Lock::Write(write) = lock {
                return write.dst(layout, dtype);
            }
        }
        unreachable!("the target was locked")
    }

    fn sources<'s, const N: usize>(&'s self, arrays: [&'s Array; N]) -> Result<[Src<'s>; N]> {
        let mut views = [None; N];
        for (view, array) in views.iter_mut().zip(arrays) {
            *view = Some(self.src(array)?);
        }
        Ok(views.map(|view| view.unwrap_or_else(|| unreachable!("one view an array"))))
    }
}

/// Calls `work` with views of `sources`.
fn read<const N: usize, R>(
    sources: [&Array; N],
    work: impl FnOnce([Src<'_>; N]) -> Result<R>,
) -> Result<R> {
    let locks = Locks::new(None, None, &sources);
    work(locks.sources(sources)?)
}

/// Calls `work` with views of `target`, of `base` unless the target holds it already, and of
/// `sources`.
fn write<const N: usize, R>(
    target: &Array,
    base: Option<&Array>,
    sources: [&Array; N],
    work: impl FnOnce(Dst<'_>, Option<Src<'_>>, [Src<'_>; N]) -> R,
) -> Result<R> {
    let locks = Locks::new(Some(&target.buffer), base, &sources);
    let base = base.map(|base| locks.src(base)).transpose()?;
    Ok(work(locks.dst(&target.layout, target.dtype)?, base, locks.sources(sources)?))
}

// Copies

/// `to = from`.
pub(crate) fn copy(to: &Array, from: &Array) -> Result<()> {
    write(to, None, [from], |dst, _, [src]| kernels::copy(dst, src))
}

/// `to = base`, unless it holds that already, and then its `part = source`.
pub(crate) fn copy_over(
    to: &Array,
    base: Option<&Array>,
    part: &Layout,
    source: &Array,
) -> Result<()> {
    let locks = Locks::new(Some(&to.buffer), base, &[source]);
    if let Some(base) = base {
        kernels::copy(locks.dst(&to.layout, to.dtype)?, locks.src(base)?);
    }
    kernels::copy(locks.dst(part, to.dtype)?, locks.src(source)?);
    Ok(())
}

/// Each part of `to`, which is fresh, from its source; where parts share an element, the last wins.
pub(crate) fn overlay(to: &Array, parts: &[(Layout, Array)]) -> Result<()> {
    let sources: SmallVec<[&Array; 5]> = parts.iter().map(|(_, source)| source).collect();
    let locks = Locks::new(Some(&to.buffer), None, &sources);
    let views = parts.iter().zip(sources);
    let views = views.map(|((part, _), from)| Ok((locks.dst(part, to.dtype)?, locks.src(from)?)));
    let views = views.collect::<Result<SmallVec<[_; 5]>>>()?;
    kernels::overlay(&views);
    Ok(())
}

/// `to` is `source` in the teeth of the comb and `base` between them; all are contiguous.
pub(crate) fn interleave(to: &Array, base: &Array, source: &Array, comb: Comb) -> Result<()> {
    write(to, None, [base, source], |dst, _, [base, source]| {
        kernels::interleave(dst, base, source, comb);
    })
}

/// A fresh contiguous copy.
pub(crate) fn to_contiguous(op: &'static str, array: &Array) -> Result<Array> {
    let fresh = array.new_like(op)?;
    copy(&fresh, array)?;
    Ok(fresh)
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
    read([index], |[src]| Positions::read(op, arg, src, axis, size))
}

/// `to[i] = from[index[i]]` along `axis`.
pub(crate) fn gather_rows(to: &Array, from: &Array, axis: usize, index: &Positions) -> Result<()> {
    write(to, None, [from], |dst, _, [src]| kernels::gather_rows(dst, src, axis, index))
}

/// `to = base; to[index[i]] (combine)= updates[i]` along `axis`; `op` and `arg` name the index in
/// errors.
pub(crate) fn scatter_rows(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index): (&'static str, &'static str, &Array),
    updates: &Array,
    combine: Combine,
) -> Result<()> {
    write(to, base, [index, updates], |dst, base, [values, updates]| {
        let index = kernels::Index { op, arg, values };
        kernels::scatter_rows(dst, base, axis, index, updates, combine)
    })?
}

/// `to[.., j, ..] = from[.., index[.., j, ..], ..]` along `axis`, where `to` is fresh; `entries`
/// stretches the index to its shape.
pub(crate) fn gather_elements(
    to: &Array,
    from: &Array,
    axis: usize,
    (op, arg, index): (&'static str, &'static str, &Array),
    entries: &Layout,
) -> Result<()> {
    let entries = index.with_layout(entries.clone());
    write(to, None, [from, index, &entries], |dst, _, [src, values, entries]| {
        let index = kernels::Index { op, arg, values };
        kernels::gather_elements(dst, src, axis, index, entries)
    })?
}

/// `to = base; to[.., index[.., j, ..], ..] (combine)= values[.., j, ..]` along `axis`; `entries`
/// stretches the index to the shape of `values`.
pub(crate) fn scatter_elements(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index, entries): (&'static str, &'static str, &Array, &Layout),
    values: &Array,
    combine: Combine,
) -> Result<()> {
    let entries = index.with_layout(entries.clone());
    let sources = [index, &entries, values];
    write(to, base, sources, |dst, base, [index, entries, updates]| {
        let index = kernels::Index { op, arg, values: index };
        kernels::scatter_elements(dst, base, axis, index, entries, updates, combine)
    })?
}

/// Whether each entry is the last one along `axis` that names its one of `places`, as bool to `to`.
pub(crate) fn winning_elements(
    to: &Array,
    index: &Positions,
    axis: usize,
    places: usize,
) -> Result<()> {
    write(to, None, [], |dst, _, []| kernels::winning_elements(dst, index, axis, places))?
}

// Masks

/// The mask, counted and copied out of reach.
pub(crate) fn bits(mask: &Array) -> Result<Bits> {
    read([mask], |[src]| Bits::read(src))
}

/// `to = base`, but the k-th true place takes the k-th element of the contiguous `source`.
pub(crate) fn expand(to: &Array, base: Option<&Array>, bits: &Bits, source: &Array) -> Result<()> {
    write(to, base, [source], |dst, base, [source]| kernels::expand(dst, base, bits, source))
}

/// `to` takes the true places of `from` in order.
pub(crate) fn compress(to: &Array, from: &Array, bits: &Bits) -> Result<()> {
    write(to, None, [from], |dst, _, [src]| kernels::compress(dst, src, bits))
}

// Triangles

/// Rows and columns of the triangle's entries, to `to`.
pub(crate) fn triangle_indices(
    to: &Array,
    triangle: Triangle,
    (rows, cols): (usize, usize),
    offset: i64,
) -> Result<()> {
    write(to, None, [], |dst, _, []| {
        kernels::triangle_indices(dst, triangle, rows, cols, offset);
    })
}

/// `to` is the triangle of `from`, and 0 beside it.
pub(crate) fn keep_triangle(
    to: &Array,
    from: &Array,
    triangle: Triangle,
    offset: i64,
) -> Result<()> {
    write(to, None, [from], |dst, _, [src]| kernels::keep_triangle(dst, src, triangle, offset))
}

// Element by element

/// `to = a (op) b`.
pub(crate) fn arithmetic(op: Arithmetic, to: &Array, a: &Array, b: &Array) -> Result<()> {
    write(to, None, [a, b], |dst, _, [a, b]| kernels::arithmetic(op, dst, a, b))
}

/// `to = op(a)`.
pub(crate) fn unary(op: Unary, to: &Array, a: &Array) -> Result<()> {
    write(to, None, [a], |dst, _, [a]| kernels::unary(op, dst, a))
}

/// `to = a (op) b`, as bool.
pub(crate) fn compare(op: Comparison, to: &Array, a: &Array, b: &Array) -> Result<()> {
    write(to, None, [a, b], |dst, _, [a, b]| kernels::compare(op, dst, a, b))
}

/// `to = if condition { a } else { b }`; without `b`, `to` keeps what it has.
pub(crate) fn select(to: &Array, condition: &Array, a: &Array, b: Option<&Array>) -> Result<()> {
    write(to, b, [condition, a], |dst, b, [condition, a]| kernels::select(dst, condition, a, b))
}

/// `to = from`, in the dtype of `to`.
pub(crate) fn cast(to: &Array, from: &Array) -> Result<()> {
    write(to, None, [from], |dst, _, [src]| kernels::cast(dst, src))
}

/// A fresh contiguous copy in another dtype.
pub(crate) fn to_dtype(op: &'static str, array: &Array, dtype: DType) -> Result<Array> {
    let fresh = Array::new(op, dtype, array.shape())?;
    cast(&fresh, array)?;
    Ok(fresh)
}

// Reductions

/// `to` is the fold of `from` over the axes for which `over` is true.
pub(crate) fn fold(how: Fold, to: &Array, from: &Array, over: &[bool]) -> Result<()> {
    write(to, None, [from], |dst, _, [src]| kernels::fold(how, dst, src, over))?
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
    write(to, None, [a, c], |dst, _, [a, c]| kernels::scan_rows(dst, a, c, axis, from, backwards))
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
    let own = first.is_some();
    write(to, None, [g, x, first.unwrap_or(g)], |dst, _, [g, x, first]| {
        kernels::products_of_others(dst, g, x, own.then_some(first), axis, index)
    })?
}

/// `to` is the gradient `g`, times all rows of `x` that name its place.
pub(crate) fn products_of_all(
    to: &Array,
    g: &Array,
    x: &Array,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    write(to, None, [g, x], |dst, _, [g, x]| kernels::products_of_all(dst, g, x, axis, index))?
}

/// `to[i]` is the entry before or after `i` that names the same of `places`.
pub(crate) fn neighbours(
    to: &Array,
    index: &Positions,
    places: usize,
    backwards: bool,
) -> Result<()> {
    let mut last = inlay_cpu::memory::Scratch::new(places)?;
    write(to, None, [], |dst, _, []| kernels::neighbours(dst, index, &mut last, backwards))
}

// Values in and out

/// Writes `values` to the contiguous array `to`, which has just as many elements.
pub(crate) fn store<T: Element>(to: &Array, values: &[T]) -> Result<()> {
    write(to, None, [], |dst, _, []| kernels::store(dst, values))
}

/// The bytes of all elements in row-major order.
pub(crate) fn load_bytes(from: &Array) -> Result<Vec<u8>> {
    load(&as_bytes(&to_contiguous("load", from)?)?)
}

/// Writes the bytes of all elements to the contiguous array `to`, which has just as many.
pub(crate) fn store_bytes(to: &Array, bytes: &[u8]) -> Result<()> {
    store(&as_bytes(to)?, bytes)
}

/// The bytes of a contiguous array that begins its buffer.
fn as_bytes(array: &Array) -> Result<Array> {
    let len = array.layout.numel().saturating_mul(array.dtype.size());
    let layout = Layout::contiguous("bytes", &[len], 1)?;
    Ok(Array { layout, dtype: DType::U8, buffer: array.buffer.clone() })
}

/// All elements in row-major order.
pub(crate) fn load<T: Element>(from: &Array) -> Result<Vec<T>> {
    read([from], |[src]| kernels::load(src))
}
