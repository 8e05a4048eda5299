//! Calls of the CPU's kernels.
//!
//! Each function locks the buffers that it uses and passes views of them to the kernel. Locks are
//! taken in the order of addresses, so that two calls can't deadlock.

use inlay_core::{Combine, DType, Layout, Result, Triangle};
pub(super) use inlay_cpu::kernels::{Bits, Positions};
use inlay_cpu::memory::{ReadGuard, Rest, WriteGuard};
use inlay_cpu::{Buffer, Dst, Element, Src, kernels};
use smallvec::SmallVec;

use super::{Comb, Elements, NamedIndex};
use crate::array::Array;

/// The locks of one call, one for each buffer: that of the target, if there is one, and those of
/// the sources.
struct Locks<'a> {
    write: Option<WriteGuard<'a>>,
    reads: SmallVec<[ReadGuard<'a>; 4]>,
}

impl<'a> Locks<'a> {
    fn none() -> Self {
        Locks { write: None, reads: SmallVec::new() }
    }

    // The guards are stored in place. Returning them by value would move bytes that were just
    // stored, which stalls on store forwarding.
    #[inline(always)]
    fn take(&mut self, target: Option<&'a Buffer>, base: Option<&'a Array>, sources: &[&'a Array]) {
        let (own, mut last) = (target.map_or(0, Buffer::id), 0);
        // There are few buffers, so searching for the next address is cheaper than sorting.
        loop {
            let mut next = target.filter(|_| own > last).map(|target| (own, target));
            for array in base.iter().chain(sources) {
                let id = array.buffer.cpu().id();
                if id > last && next.is_none_or(|(next, _)| id < next) {
                    next = Some((id, array.buffer.cpu()));
                }
            }
            let Some((id, buffer)) = next else { return };
            last = id;
            match id == own {
                true => self.write = Some(buffer.write()),
                false => self.reads.push(buffer.read()),
            }
        }
    }

    /// Returns the sources of a call that writes nothing.
    fn sources(&self) -> Sources<'_> {
        Sources { reads: &self.reads, rest: None }
    }

    /// Returns a view of the target in `layout`, and the sources that may be read while it is
    /// written.
    #[inline(always)]
    fn split<'s>(&'s mut self, layout: &'s Layout, dtype: DType) -> Result<(Dst<'s>, Sources<'s>)> {
        let Some(write) = &mut self.write else { unreachable!("the target was locked") };
        let (dst, rest) = write.split(layout, dtype)?;
        Ok((dst, Sources { reads: &self.reads, rest: Some(rest) }))
    }
}

/// Locked buffers that this call does not write. Every source of the call is among them.
#[derive(Clone, Copy)]
struct Sources<'s> {
    reads: &'s [ReadGuard<'s>],
    /// A source may share the buffer of the target if it does not overlap the target.
    rest: Option<Rest<'s>>,
}

impl<'s> Sources<'s> {
    #[inline(always)]
    fn src(&self, array: &'s Array) -> Result<Src<'s>> {
        self.src_at(array, &array.layout)
    }

    /// Returns a view of an array in another layout.
    #[inline(always)]
    fn src_at(&self, array: &Array, layout: &'s Layout) -> Result<Src<'s>> {
        let buffer = array.buffer.cpu();
        for read in self.reads {
            if read.buffer().same_as(buffer) {
                return read.src(layout, array.dtype);
            }
        }
        match self.rest {
            Some(rest) if rest.buffer().same_as(buffer) => rest.src(layout, array.dtype),
            _ => unreachable!("every source was locked"),
        }
    }

    // Inlined, so that the views stay in registers.
    #[inline(always)]
    fn all<const N: usize>(&self, arrays: [&'s Array; N]) -> Result<[Src<'s>; N]> {
        let mut views = [None; N];
        for (view, array) in views.iter_mut().zip(arrays) {
            *view = Some(self.src(array)?);
        }
        Ok(views.map(|view| view.unwrap_or_else(|| unreachable!("each array has a view"))))
    }
}

/// Calls `work` with views of `sources`.
fn read<const N: usize, R>(
    sources: [&Array; N],
    work: impl FnOnce([Src<'_>; N]) -> Result<R>,
) -> Result<R> {
    let mut locks = Locks::none();
    locks.take(None, None, &sources);
    work(locks.sources().all(sources)?)
}

/// Calls `work` with a view of `target`, a view of `base` (`None` if the target already has its
/// values), and views of `sources`.
#[inline]
pub(super) fn write<const N: usize, R>(
    target: &Array,
    base: Option<&Array>,
    sources: [&Array; N],
    work: impl FnOnce(Dst<'_>, Option<Src<'_>>, [Src<'_>; N]) -> R,
) -> Result<R> {
    let mut locks = Locks::none();
    locks.take(Some(target.buffer.cpu()), base, &sources);
    let (dst, locked) = locks.split(&target.layout, target.dtype)?;
    let base = base.map(|base| locked.src(base)).transpose()?;
    Ok(work(dst, base, locked.all(sources)?))
}

// Copies

pub(super) fn copy_over(
    to: &Array,
    base: Option<&Array>,
    part: &Layout,
    source: &Array,
) -> Result<()> {
    let mut locks = Locks::none();
    locks.take(Some(to.buffer.cpu()), base, &[source]);
    if let Some(base) = base {
        let (dst, locked) = locks.split(&to.layout, to.dtype)?;
        kernels::copy(dst, locked.src(base)?);
    }
    let (dst, locked) = locks.split(part, to.dtype)?;
    kernels::copy(dst, locked.src(source)?);
    Ok(())
}

pub(super) fn overlay(to: &Array, parts: &[(Layout, Array)]) -> Result<()> {
    let sources: SmallVec<[&Array; 5]> = parts.iter().map(|(_, source)| source).collect();
    let mut locks = Locks::none();
    locks.take(Some(to.buffer.cpu()), None, &sources);
    let (dst, locked) = locks.split(&to.layout, to.dtype)?;
    let views = parts.iter().map(|(part, from)| Ok((part, locked.src(from)?)));
    let views = views.collect::<Result<SmallVec<[_; 5]>>>()?;
    kernels::overlay(dst, &views);
    Ok(())
}

pub(super) fn interleave(to: &Array, base: &Array, source: &Array, comb: Comb) -> Result<()> {
    write(to, None, [base, source], |dst, _, [base, source]| {
        kernels::interleave(dst, base, source, comb);
    })
}

// Rows and elements

pub(super) fn positions(
    op: &'static str,
    arg: &'static str,
    index: &Array,
    axis: usize,
    size: usize,
) -> Result<Positions> {
    read([index], |[src]| Positions::read(op, arg, src, axis, size))
}

pub(super) fn scatter_rows(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index): NamedIndex<'_>,
    updates: &Array,
    combine: Combine,
) -> Result<()> {
    write(to, base, [index, updates], |dst, base, [values, updates]| {
        let index = kernels::Index { op, arg, values };
        kernels::scatter_rows(dst, base, axis, index, updates, combine)
    })?
}

pub(super) fn scatter_selected(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index): NamedIndex<'_>,
    (rows, (select, selector, selected)): (&Array, NamedIndex<'_>),
    combine: Combine,
) -> Result<()> {
    let selected = positions(select, selector, selected, axis, rows.shape()[axis])?;
    write(to, base, [index, rows], |dst, base, [values, rows]| {
        let index = kernels::Index { op, arg, values };
        kernels::scatter_selected_rows(dst, base, axis, index, (rows, &selected), combine)
    })?
}

pub(super) fn gather_elements(
    to: &Array,
    from: &Array,
    axis: usize,
    (op, arg, index): NamedIndex<'_>,
    entries: &Layout,
) -> Result<()> {
    let mut locks = Locks::none();
    locks.take(Some(to.buffer.cpu()), None, &[from, index]);
    let (dst, locked) = locks.split(&to.layout, to.dtype)?;
    let [src, values] = locked.all([from, index])?;
    let entries = locked.src_at(index, entries)?;
    kernels::gather_elements(dst, src, axis, kernels::Index { op, arg, values }, entries)
}

pub(super) fn scatter_elements(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index, entries): Elements<'_>,
    values: &Array,
    combine: Combine,
) -> Result<()> {
    let mut locks = Locks::none();
    locks.take(Some(to.buffer.cpu()), base, &[index, values]);
    let (dst, locked) = locks.split(&to.layout, to.dtype)?;
    let base = base.map(|base| locked.src(base)).transpose()?;
    let [updates, values] = locked.all([values, index])?;
    let entries = locked.src_at(index, entries)?;
    let index = kernels::Index { op, arg, values };
    kernels::scatter_elements(dst, base, axis, index, entries, updates, combine)
}

/// Fails unless each entry of `from` names an earlier row (backwards: a later one) or none.
pub(super) fn expect_chain(op: &'static str, from: &Positions, backwards: bool) -> Result<()> {
    let count = from.values().len();
    let comes_later = |(row, from): (usize, &i64)| match *from as usize {
        from if from == count => false,
        from => {
            if backwards {
                from <= row
            } else {
                from >= row
            }
        }
    };
    match from.values().iter().enumerate().any(comes_later) {
        true => Err(super::kernels::broken_chain(op)),
        false => Ok(()),
    }
}

// Masks

pub(super) fn bits(mask: &Array) -> Result<Bits> {
    read([mask], |[src]| Bits::read(src))
}

// Triangles

pub(super) fn triangle_indices(
    to: &Array,
    triangle: Triangle,
    (rows, cols): (usize, usize),
    offset: i64,
) -> Result<()> {
    write(to, None, [], |dst, _, []| {
        kernels::triangle_indices(dst, triangle, rows, cols, offset);
    })
}

// Reductions

pub(super) fn neighbours(
    to: &Array,
    index: &Positions,
    places: usize,
    backwards: bool,
) -> Result<()> {
    let mut last = inlay_cpu::memory::Scratch::new(places)?;
    write(to, None, [], |dst, _, []| kernels::neighbours(dst, index, &mut last, backwards))
}

// Values in and out

pub(super) fn store<T: Element>(to: &Array, values: &[T]) -> Result<()> {
    write(to, None, [], |dst, _, []| kernels::store(dst, values))
}

pub(super) fn load_bytes(from: &Array) -> Result<Vec<u8>> {
    load(&as_bytes(&super::to_contiguous("load", from)?)?)
}

pub(super) fn store_bytes(to: &Array, bytes: &[u8]) -> Result<()> {
    store(&as_bytes(to)?, bytes)
}

/// Returns the bytes of a contiguous array that starts at the first byte of its buffer.
fn as_bytes(array: &Array) -> Result<Array> {
    let len = array.layout.numel().saturating_mul(array.dtype.size());
    let layout = Layout::contiguous("bytes", &[len], 1)?;
    Ok(Array { layout, dtype: DType::U8, buffer: array.buffer.clone() })
}

pub(super) fn load<T: Element>(from: &Array) -> Result<Vec<T>> {
    read([from], |[src]| kernels::load(src))
}
