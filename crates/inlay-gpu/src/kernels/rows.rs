//! Reads and writes of whole rows, at the positions of an index.
//!
//! Layouts are transposed so that the axis comes first. Element `c` of row `r` then has the
//! row-major number `r * width + c`.

use inlay_core::{Combine, Layout, Reduce, Result, resized};

use super::accumulator::Accumulator;
use super::elements::gather;
use super::positions::{winners, zeros};
use super::{MAX_STEPS, Positions, expect, sort};
use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::shader::{Access, Kernel, Wgsl, wgsl_file};

/// Writes `to[i] = from[index[i]]` along `axis`.
///
/// # Errors
/// The views don't fit, or the device is lost or refuses the call.
pub fn gather_rows(to: View<'_>, from: View<'_>, axis: usize, index: &Positions) -> Result<()> {
    let op = "gather_rows";
    expect::axis(op, axis, from.layout)?;
    let shape = resized(from.layout.shape(), axis, index.count()? as usize);
    expect::shape(op, "to", to.layout.shape(), &shape)?;
    // The index is broadcast: it has stride 0 on all other axes.
    let mut strides = vec![0; to.layout.rank()];
    strides[axis] = 4;
    let index_layout = Layout::over(to.layout.shape(), &strides, 0);
    gather(op, to, from, axis, index, &index_layout)
}

/// Returns the layout with `axis` moved to the front.
pub(super) fn axis_first(layout: &Layout, axis: usize) -> Layout {
    let others = (0..layout.rank()).filter(|&other| other != axis);
    let order: Vec<usize> = [axis].into_iter().chain(others).collect();
    layout.transpose(&order)
}

/// Computes `to = base; to[index[i]] (combine)= updates[i]` along `axis`, in the order of i.
/// Without a base, `to` is changed in place.
///
/// # Errors
/// The views don't fit, or the device can't compute with the dtype, is lost or refuses the call.
pub fn scatter_rows(
    op: &'static str,
    to: View<'_>,
    base: Option<View<'_>>,
    axis: usize,
    index: &Positions,
    updates: View<'_>,
    combine: Combine,
) -> Result<()> {
    expect::axis(op, axis, to.layout)?;
    let places = to.layout.shape()[axis];
    expect::positions(op, index, places)?;
    let shape = resized(to.layout.shape(), axis, index.count()? as usize);
    expect::shape(op, "updates", updates.layout.shape(), &shape)?;
    let (to_rows, rows) = (axis_first(to.layout, axis), axis_first(updates.layout, axis));
    let base_rows = base.map(|base| axis_first(base.layout, axis));
    let base = base.zip(base_rows.as_ref()).map(|(base, layout)| View { layout, ..base });
    let keys = Keys { words: index.words(), count: index.count()?, places };
    let (to, updates) = (View { layout: &to_rows, ..to }, View { layout: &rows, ..updates });
    scatter(op, to, base, &keys, updates, combine)
}

/// The place that each entry names, in index order.
pub(super) struct Keys<'a> {
    pub(super) words: &'a Buffer,
    pub(super) count: u32,
    pub(super) places: usize,
}

/// The largest number of places per entry for which a table of all places is cheaper than sorting
/// the entries.
const DENSE: usize = 16;

/// Computes `to = base; to[keys[i]] (combine)= updates[i]`, in the order of i. In row-major order,
/// `to` consists of one row per place, and `updates` of one row per entry.
pub(super) fn scatter(
    op: &'static str,
    to: View<'_>,
    base: Option<View<'_>>,
    keys: &Keys<'_>,
    updates: View<'_>,
    combine: Combine,
) -> Result<()> {
    expect::dtype(op, "updates", updates, to.dtype)?;
    base.map_or(Ok(()), |base| expect::like(op, "base", base, to))?;
    let elements = count(to.layout.numel())?;
    if elements == 0 {
        return Ok(());
    }
    let width = elements / count(keys.places)?;
    let places = count(keys.places)?;
    let scatter = RowScatter { to, base, updates, width, places, entries: keys.count };
    let Combine::Reduce { reduce, include_self } = combine else {
        return scatter.assign(keys);
    };
    to.buffer.gpu().expect_arithmetic(op, to.dtype)?;
    let sorted = sort::sort(keys.words, keys.count, keys.places)?;
    scatter.reduce(&sorted, (reduce, include_self))
}

struct RowScatter<'a> {
    to: View<'a>,
    base: Option<View<'a>>,
    updates: View<'a>,
    /// The number of elements in a row.
    width: u32,
    places: u32,
    entries: u32,
}

impl<'a> RowScatter<'a> {
    /// Whether each thread handles an element of a place. Otherwise it handles an element of an
    /// entry. If there is a base, all places must be written.
    fn by_place(&self) -> bool {
        self.base.is_some() || self.places <= self.entries
    }

    /// The number of threads if each handles an element of an entry.
    fn threads(&self) -> Result<u32> {
        count(self.entries as usize * self.width as usize)
    }

    /// Starts a kernel that reads the updates, and the base if there is one.
    fn kernel(&self, name: &'static str, body: &'static Wgsl) -> Result<Kernel<'a>> {
        let kernel = Kernel::new(name, body, self.to.buffer)
            .partial()
            .params(&[self.width, self.entries])
            .read("u", self.updates)?;
        match self.base {
            Some(base) => kernel.with(wgsl_file!("with_base.wgsl")).read("b", base),
            None => Ok(kernel.with(wgsl_file!("without_base.wgsl"))),
        }
    }

    fn assign(&self, keys: &Keys<'_>) -> Result<()> {
        if self.by_place() || self.places as usize / DENSE <= self.entries as usize {
            let table = winners(keys.words, self.entries, self.places)?;
            if self.by_place() {
                let kernel = self.kernel("assign_places", wgsl_file!("assign_places.wgsl"))?;
                return kernel.words("table", &table).to(self.to);
            }
            let kernel = self.kernel("assign", wgsl_file!("assign.wgsl"))?;
            let kernel = kernel.words("keys", keys.words).words("table", &table);
            return kernel.put(self.to, self.threads()?);
        }
        let sorted = sort::sort(keys.words, self.entries, keys.places)?;
        self.kernel("assign_sorted", wgsl_file!("assign_sorted.wgsl"))?
            .words("keys", &sorted.keys)
            .words("order", &sorted.order)
            .put(self.to, self.threads()?)
    }

    /// Starts a kernel that reduces the sorted entries of a place.
    fn reducing<'k>(
        &self,
        name: &'static str,
        body: &'static Wgsl,
        sorted: &'k sort::Sorted,
        (reduce, include_self): (Reduce, bool),
    ) -> Result<Kernel<'k>>
    where
        'a: 'k,
    {
        let kernel: Kernel<'k> = self.kernel(name, body)?;
        let accumulator = Accumulator::of_reduce(reduce, self.to.dtype);
        Ok(kernel
            .accumulates(&accumulator, self.to.dtype)
            .finishes(&accumulator)
            .with(wgsl_file!("update.wgsl"))
            .constant("INCLUDE_SELF", include_self.into())
            .constant("LONG", LONG)
            .words("order", &sorted.order))
    }

    fn reduce(&self, sorted: &sort::Sorted, how: (Reduce, bool)) -> Result<()> {
        if self.by_place() {
            let ends = sorted.ends(self.entries, self.places)?;
            self.reducing("reduce_places", wgsl_file!("reduce_places.wgsl"), sorted, how)?
                .words("ends", &ends)
                .to(self.to)?;
        } else {
            self.reducing("reduce_entries", wgsl_file!("reduce_entries.wgsl"), sorted, how)?
                .words("keys", &sorted.keys)
                .put(self.to, self.threads()?)?;
        }
        // At most `entries / LONG` places can have more than LONG entries.
        match self.entries / LONG {
            0 => Ok(()),
            most => self.reduce_long(sorted, how, most),
        }
    }

    /// Reduces the places with more than LONG entries. There are at most `most` of them.
    fn reduce_long(&self, sorted: &sort::Sorted, how: (Reduce, bool), most: u32) -> Result<()> {
        let list = zeros(self.to.buffer, 1 + most)?;
        Kernel::new("long_places", wgsl_file!("long_places.wgsl"), &list)
            .constant("LONG", LONG)
            .words("keys", &sorted.keys)
            .operand("list", &list, 4, Access::Atomic)
            .run(self.entries)?;
        let size = Accumulator::of_reduce(how.0, self.to.dtype).size;
        let threads = count(most as usize * self.width as usize)?;
        let acc = Buffer::on(self.to.buffer.gpu(), threads as usize * size)?;
        let last = (self.entries - 1) / SPAN;
        for part in 0..=last {
            let (name, body, access) = match part == last {
                true => ("reduce_end", wgsl_file!("reduce_end.wgsl"), Access::Read),
                false => ("reduce_part", wgsl_file!("reduce_part.wgsl"), Access::Write),
            };
            let kernel = self
                .reducing(name, body, sorted, how)?
                .with(wgsl_file!("segment.wgsl"))
                .with(wgsl_file!("end_from.wgsl"))
                .with(wgsl_file!("reduce_long.wgsl"))
                .constant("SPAN", SPAN)
                .params(&[part])
                .words("keys", &sorted.keys)
                .words("list", &list)
                .operand("acc", &acc, size, access);
            match part == last {
                true => kernel.put(self.to, threads)?,
                false => kernel.read("to", self.to)?.run(threads)?,
            }
        }
        Ok(())
    }
}

/// The largest number of entries of a place that one loop reduces. Places with more entries are
/// reduced separately, in parts.
const LONG: u32 = MAX_STEPS;

/// The number of entries in a part. The loop over a part processes 16 entries per step.
const SPAN: u32 = 16 * MAX_STEPS;
