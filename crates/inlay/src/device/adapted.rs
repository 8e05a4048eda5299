//! The kernels whose signatures differ between the devices. Each function has the body for the CPU
//! and the body for a GPU side by side.

use inlay_core::{Combine, DType, Error, Layout, Result, Triangle};
use inlay_cpu::kernels::{self, Index};
use smallvec::SmallVec;

use super::cpu::{self, Locks};
#[cfg(feature = "gpu")]
use super::gpu::{self, part, view};
use super::kernels::{Bits, Positions, cast};
use super::{Comb, Device};
use crate::array::Array;
use crate::memory::Buffer;

/// An index, preceded by the names of the operation and of the index argument, for errors.
pub(crate) type NamedIndex<'a> = (&'static str, &'static str, &'a Array);

/// A [`NamedIndex`] of elements, and its layout broadcast to the shape of the elements.
pub(crate) type Elements<'a> = (&'static str, &'static str, &'a Array, &'a Layout);

// Copies

/// Copies `base` to `to`, if it is given, and then `source` to the `region` of `to`.
#[inline]
pub(crate) fn copy_over(
    to: &Array,
    base: Option<&Array>,
    region: &Layout,
    source: &Array,
) -> Result<()> {
    match &to.buffer {
        Buffer::Cpu(buffer) => {
            let mut locks = Locks::none();
            locks.take(Some(buffer), base, &[source])?;
            if let Some(base) = base {
                let (dst, locked) = locks.split(&to.layout, to.dtype)?;
                kernels::copy(dst, locked.src(base)?);
            }
            let (dst, locked) = locks.split(region, to.dtype)?;
            kernels::copy(dst, locked.src(source)?);
            Ok(())
        }
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => {
            if let Some(base) = base {
                inlay_gpu::kernels::copy(view(to), view(base))?;
            }
            inlay_gpu::kernels::copy(part(to, region), view(source))
        }
    }
}

/// Copies to each part of the fresh `to` from its source. Where parts overlap, the last one wins.
pub(crate) fn overlay(to: &Array, parts: &[(Layout, Array)]) -> Result<()> {
    match &to.buffer {
        Buffer::Cpu(buffer) => {
            let sources: SmallVec<[&Array; 5]> = parts.iter().map(|(_, source)| source).collect();
            let mut locks = Locks::none();
            locks.take(Some(buffer), None, &sources)?;
            let (dst, locked) = locks.split(&to.layout, to.dtype)?;
            let views = parts.iter().map(|(part, from)| Ok((part, locked.src(from)?)));
            kernels::overlay(dst, &views.collect::<Result<SmallVec<[_; 5]>>>()?);
            Ok(())
        }
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => parts
            .iter()
            .try_for_each(|(region, from)| inlay_gpu::kernels::copy(part(to, region), view(from))),
    }
}

/// Whether the device of `array` has [`interleave`].
#[inline]
pub(crate) fn interleaves(array: &Array) -> bool {
    array.buffer.device() == Device::Cpu
}

/// `to` is `source` at the teeth of the comb, and `base` between them. All arrays are contiguous,
/// and on the CPU.
#[inline]
pub(crate) fn interleave(to: &Array, base: &Array, source: &Array, comb: Comb) -> Result<()> {
    cpu::write(to, None, [base, source], |dst, _, [base, source]| {
        kernels::interleave(dst, base, source, comb);
    })
}

/// Returns a fresh contiguous copy in another dtype.
pub(crate) fn to_dtype(op: &'static str, array: &Array, dtype: DType) -> Result<Array> {
    let fresh = Array::on(array.buffer.device(), op, dtype, array.shape())?;
    cast(&fresh, array)?;
    Ok(fresh)
}

// Rows

/// Returns a private copy of the index, checked against `size`.
pub(crate) fn positions(
    op: &'static str,
    arg: &'static str,
    index: &Array,
    axis: usize,
    size: usize,
) -> Result<Positions> {
    match &index.buffer {
        Buffer::Cpu(_) => cpu::positions((op, arg, index), axis, size).map(Positions::Cpu),
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => gpu::positions((op, arg, index), axis, size).map(Positions::Gpu),
    }
}

/// Writes positions to `to`, a fresh array of `i64`.
pub(crate) fn store_positions(to: &Array, index: &Positions) -> Result<()> {
    match index {
        Positions::Cpu(index) => super::store(to, index.values()),
        #[cfg(feature = "gpu")]
        Positions::Gpu(index) => index.store(view(to)),
    }
}

/// Fails unless each entry of `from` names an earlier row (backwards: a later one), or is the
/// number of rows.
pub(crate) fn expect_chain(op: &'static str, from: &Positions, backwards: bool) -> Result<()> {
    let broken = move || {
        let (got, expected) = ("a row that is not done".into(), "one that is".into());
        Error::Argument { op, arg: "from", got, expected }
    };
    match from {
        Positions::Cpu(from) => {
            let count = from.values().len();
            let comes_later = |(row, from): (usize, &i64)| match (*from as usize, backwards) {
                (from, _) if from == count => false,
                (from, true) => from <= row,
                (from, false) => from >= row,
            };
            match from.values().iter().enumerate().any(comes_later) {
                true => Err(broken()),
                false => Ok(()),
            }
        }
        #[cfg(feature = "gpu")]
        Positions::Gpu(from) => from.expect_chain(backwards, Box::new(move |_| broken())),
    }
}

/// `to[i] = from[index[i]]` along `axis`, where `to` is fresh.
pub(crate) fn gather_rows(
    to: &Array,
    from: &Array,
    axis: usize,
    (op, arg, index): NamedIndex<'_>,
) -> Result<()> {
    match &to.buffer {
        Buffer::Cpu(_) => cpu::write(to, None, [from, index], |dst, _, [src, values]| {
            kernels::gather_rows(dst, src, axis, Index { op, arg, values })
        })?,
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => {
            let index = gpu::positions((op, arg, index), axis, from.shape()[axis])?;
            inlay_gpu::kernels::gather_rows(view(to), view(from), axis, &index)
        }
    }
}

/// `to = base; to[index[i]] (combine)= updates[i]` along `axis`.
pub(crate) fn scatter_rows(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index): NamedIndex<'_>,
    updates: &Array,
    combine: Combine,
) -> Result<()> {
    match &to.buffer {
        Buffer::Cpu(_) => {
            cpu::write(to, base, [index, updates], |dst, base, [values, updates]| {
                let index = Index { op, arg, values };
                kernels::scatter_rows(dst, base, axis, index, updates, combine)
            })?
        }
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => {
            let index = gpu::positions((op, arg, index), axis, to.shape()[axis])?;
            let (to, base, updates) = (view(to), base.map(view), view(updates));
            inlay_gpu::kernels::scatter_rows(op, to, base, axis, &index, updates, combine)
        }
    }
}

/// Whether [`scatter_selected`] can run for an index with `entries` entries on `axis` of `to`.
pub(crate) fn selects(to: &Array, axis: usize, entries: usize, rows: &Array) -> bool {
    let (places, rows) = (to.shape()[axis], rows.shape()[axis]);
    to.buffer.device() == Device::Cpu && kernels::may_select(places, entries, rows)
}

/// `to = base; to[index[i]] (combine)= rows[selected[i]]` along `axis`, on the CPU.
pub(crate) fn scatter_selected(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index): NamedIndex<'_>,
    (rows, (select, selector, selected)): (&Array, NamedIndex<'_>),
    combine: Combine,
) -> Result<()> {
    let selected = cpu::positions((select, selector, selected), axis, rows.shape()[axis])?;
    cpu::write(to, base, [index, rows], |dst, base, [values, rows]| {
        let index = Index { op, arg, values };
        kernels::scatter_selected_rows(dst, base, axis, index, (rows, &selected), combine)
    })?
}

/// `to[i]` is the previous entry (backwards: the next one) that names the same place as `i`, or the
/// number of entries if there is none. There are `places` places.
pub(crate) fn neighbours(
    to: &Array,
    index: &Positions,
    places: usize,
    backwards: bool,
) -> Result<()> {
    match index {
        Positions::Cpu(index) => {
            let mut last = inlay_cpu::memory::Scratch::new(places)?;
            cpu::write(to, None, [], |dst, _, []| {
                kernels::neighbours(dst, index, &mut last, backwards);
            })
        }
        #[cfg(feature = "gpu")]
        Positions::Gpu(index) => inlay_gpu::kernels::neighbours(view(to), index, places, backwards),
    }
}

// Elements

/// `to[.., j, ..] = from[.., index[.., j, ..], ..]` along `axis`, where `to` is fresh. The index is
/// broadcast to the shape of `to`.
pub(crate) fn gather_elements(
    to: &Array,
    from: &Array,
    axis: usize,
    (op, arg, index, entries): Elements<'_>,
) -> Result<()> {
    match &to.buffer {
        Buffer::Cpu(buffer) => {
            let mut locks = Locks::none();
            locks.take(Some(buffer), None, &[from, index])?;
            let (dst, locked) = locks.split(&to.layout, to.dtype)?;
            let [src, values] = locked.all([from, index])?;
            let entries = locked.src_at(index, entries)?;
            kernels::gather_elements(dst, src, axis, Index { op, arg, values }, entries)
        }
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => {
            let index = gpu::positions((op, arg, index), axis, from.shape()[axis])?;
            inlay_gpu::kernels::gather_elements(view(to), view(from), axis, &index)
        }
    }
}

/// `to = base; to[.., index[.., j, ..], ..] (combine)= values[.., j, ..]` along `axis`. The index
/// is broadcast to the shape of `values`.
pub(crate) fn scatter_elements(
    to: &Array,
    base: Option<&Array>,
    axis: usize,
    (op, arg, index, entries): Elements<'_>,
    values: &Array,
    combine: Combine,
) -> Result<()> {
    match &to.buffer {
        Buffer::Cpu(buffer) => {
            let mut locks = Locks::none();
            locks.take(Some(buffer), base, &[index, values])?;
            let (dst, locked) = locks.split(&to.layout, to.dtype)?;
            let base = base.map(|base| locked.src(base)).transpose()?;
            let [updates, values] = locked.all([values, index])?;
            let entries = locked.src_at(index, entries)?;
            let index = Index { op, arg, values };
            kernels::scatter_elements(dst, base, axis, index, entries, updates, combine)
        }
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => {
            let index = gpu::positions((op, arg, index), axis, to.shape()[axis])?;
            let (to, base, values) = (view(to), base.map(view), view(values));
            inlay_gpu::kernels::scatter_elements(op, to, base, axis, &index, values, combine)
        }
    }
}

// Masks and triangles

/// Returns a private copy of the mask, packed and counted.
pub(crate) fn bits(mask: &Array) -> Result<Bits> {
    match &mask.buffer {
        Buffer::Cpu(_) => cpu::read([mask], |[src]| cpu::Bits::read(src)).map(Bits::Cpu),
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => gpu::Bits::read(view(mask)).map(Bits::Gpu),
    }
}

impl Bits {
    /// Returns the number of true elements. Waits for a GPU.
    pub(crate) fn ones(&self) -> Result<usize> {
        match self {
            Bits::Cpu(bits) => Ok(bits.ones()),
            #[cfg(feature = "gpu")]
            Bits::Gpu(bits) => bits.ones(),
        }
    }

    /// Returns the number of true elements if it is known without waiting.
    pub(crate) fn counted(&self) -> Option<usize> {
        match self {
            Bits::Cpu(bits) => Some(bits.ones()),
            #[cfg(feature = "gpu")]
            Bits::Gpu(_) => None,
        }
    }

    /// Fails if more elements are true than the source, called `arg`, has elements.
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

/// Writes the rows and columns of the triangle's entries to `to`.
pub(crate) fn triangle_indices(
    to: &Array,
    triangle: Triangle,
    (rows, cols): (usize, usize),
    offset: i64,
) -> Result<()> {
    match &to.buffer {
        Buffer::Cpu(_) => cpu::write(to, None, [], |dst, _, []| {
            kernels::triangle_indices(dst, triangle, rows, cols, offset);
        }),
        // The matrix may have more rows or columns than a GPU kernel can count, even if the
        // triangle is small.
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) if rows.max(cols) >= u32::MAX as usize => {
            let host = Array::on(Device::Cpu, "triangle_indices", to.dtype, to.shape())?;
            triangle_indices(&host, triangle, (rows, cols), offset)?;
            super::store_bytes(to, &super::load_bytes(&host)?)
        }
        #[cfg(feature = "gpu")]
        Buffer::Gpu(_) => {
            inlay_gpu::kernels::triangle_indices(view(to), triangle, (rows, cols), offset)
        }
    }
}
