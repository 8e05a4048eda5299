//! Locks of the buffers that a call uses on the CPU, and views of them for its kernel. A call that has
//! to wait takes its locks in the order of addresses, so that two calls can't deadlock.

use inlay_core::{DType, Layout, Result};
pub(super) use inlay_cpu::kernels::{Bits, Positions};
use inlay_cpu::memory::{ReadGuard, Rest, WriteGuard};
use inlay_cpu::{Buffer, Dst, Element, Src, kernels};
use smallvec::SmallVec;

use super::NamedIndex;
use crate::array::Array;

/// The locks of one call: that of the target, if there is one, and those of the sources.
pub(super) struct Locks<'a> {
    write: Option<WriteGuard<'a>>,
    reads: SmallVec<[ReadGuard<'a>; 4]>,
}

impl<'a> Locks<'a> {
    pub(super) fn none() -> Self {
        Locks { write: None, reads: SmallVec::new() }
    }

    // The guards are stored in place. Returning them by value would move bytes that were just
    // stored, which stalls on store forwarding.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        target: Option<&'a Buffer>,
        base: Option<&'a Array>,
        sources: &[&'a Array],
    ) -> Result<()> {
        if !self.take_free(target, base, sources) {
            self.take_all(target, base, sources);
        }
        match target {
            Some(target) if target.is_borrowed() => self.take_later(target, base, sources),
            _ => Ok(()),
        }
    }

    /// Takes the locks in any order if that is possible without waiting. This is the usual case:
    /// nobody else uses the tensors of the call, and no source is in the memory of the target.
    #[inline(always)]
    fn take_free(
        &mut self,
        target: Option<&'a Buffer>,
        base: Option<&'a Array>,
        sources: &[&'a Array],
    ) -> bool {
        self.write = target.and_then(Buffer::try_write);
        let mut free = self.write.is_some() || target.is_none();
        for array in base.iter().chain(sources) {
            match array.buffer.cpu().try_read().filter(|_| free) {
                Some(read) => self.reads.push(read),
                None => free = false,
            }
        }
        if !free {
            *self = Locks::none();
        }
        free
    }

    /// Takes the locks when nobody has a slice of the target.
    #[cold]
    fn take_later(
        &mut self,
        target: &'a Buffer,
        base: Option<&'a Array>,
        sources: &[&'a Array],
    ) -> Result<()> {
        while target.is_borrowed() {
            *self = Locks::none();
            target.wait_until_free("write", "the target")?;
            self.take_all(Some(target), base, sources);
        }
        Ok(())
    }

    /// Takes the locks in the order of addresses, and waits for each of them.
    #[cold]
    fn take_all(
        &mut self,
        target: Option<&'a Buffer>,
        base: Option<&'a Array>,
        sources: &[&'a Array],
    ) {
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
    pub(super) fn split<'s>(
        &'s mut self,
        layout: &'s Layout,
        dtype: DType,
    ) -> Result<(Dst<'s>, Sources<'s>)> {
        let Some(write) = &mut self.write else { unreachable!("the target was locked") };
        let (dst, rest) = write.split(layout, dtype)?;
        Ok((dst, Sources { reads: &self.reads, rest: Some(rest) }))
    }
}

/// Locked buffers that this call does not write. Every source of the call is among them.
#[derive(Clone, Copy)]
pub(super) struct Sources<'s> {
    reads: &'s [ReadGuard<'s>],
    /// A source may share the buffer of the target if it does not overlap the target.
    rest: Option<Rest<'s>>,
}

impl<'s> Sources<'s> {
    #[inline(always)]
    pub(super) fn src(&self, array: &'s Array) -> Result<Src<'s>> {
        self.src_at(array, &array.layout)
    }

    /// Returns a view of an array in another layout.
    #[inline(always)]
    pub(super) fn src_at(&self, array: &Array, layout: &'s Layout) -> Result<Src<'s>> {
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
    pub(super) fn all<const N: usize>(&self, arrays: [&'s Array; N]) -> Result<[Src<'s>; N]> {
        let mut views = [None; N];
        for (view, array) in views.iter_mut().zip(arrays) {
            *view = Some(self.src(array)?);
        }
        Ok(views.map(|view| view.unwrap_or_else(|| unreachable!("each array has a view"))))
    }
}

/// Calls `work` with views of `sources`.
pub(super) fn read<const N: usize, R>(
    sources: [&Array; N],
    work: impl FnOnce([Src<'_>; N]) -> Result<R>,
) -> Result<R> {
    let mut locks = Locks::none();
    locks.take(None, None, &sources)?;
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
    locks.take(Some(target.buffer.cpu()), base, &sources)?;
    let (dst, locked) = locks.split(&target.layout, target.dtype)?;
    let base = base.map(|base| locked.src(base)).transpose()?;
    Ok(work(dst, base, locked.all(sources)?))
}

/// Returns a private copy of the index, checked against `size`.
pub(super) fn positions(
    (op, arg, index): NamedIndex<'_>,
    axis: usize,
    size: usize,
) -> Result<Positions> {
    read([index], |[src]| Positions::read(op, arg, src, axis, size))
}

// Values in and out

pub(super) fn store<T: Element>(to: &Array, values: &[T]) -> Result<()> {
    write(to, None, [], |dst, _, []| kernels::store(dst, values))
}

pub(super) fn store_bytes(to: &Array, bytes: &[u8]) -> Result<()> {
    write(to, None, [], |dst, _, []| kernels::store_bytes(dst, bytes))
}

pub(super) fn load_bytes(from: &Array) -> Result<Vec<u8>> {
    read([from], |[src]| kernels::load_bytes(src))
}

pub(super) fn load<T: Element>(from: &Array) -> Result<Vec<T>> {
    read([from], |[src]| kernels::load(src))
}
