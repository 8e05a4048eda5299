//! Whole rows at the positions of an index.
//!
//! With the axis in front, element `c` of row `r` is element `r * width + c`, wherever it lies.

use inlay_core::{Combine, DType, Kind, Layout, Reduce, Result};

use super::elements::gather;
use super::positions::{winners, zeros};
use super::{Positions, sort};
use crate::View;
use crate::layout::count;
use crate::memory::Buffer;
use crate::numbers::wide_size;
use crate::shader::{Access, Kernel};

/// `to[i] = from[index[i]]` along `axis`.
///
/// # Errors
/// A device that is gone, or that refuses.
pub fn gather_rows(to: View<'_>, from: View<'_>, axis: usize, index: &Positions) -> Result<()> {
    // The index counts on the axis alone.
    let mut strides = vec![0; to.layout.rank()];
    strides[axis] = 4;
    let entries = Layout::over(to.layout.shape(), &strides, 0);
    gather(to, from, axis, index, &entries)
}

/// The same elements with an axis in front.
pub(super) fn axis_first(layout: &Layout, axis: usize) -> Layout {
    let others = (0..layout.rank()).filter(|&other| other != axis);
    let order: Vec<usize> = [axis].into_iter().chain(others).collect();
    layout.transpose(&order)
}

/// `to = base; to[index[i]] (combine)= updates[i]` along `axis`, for i in order.
///
/// # Errors
/// A device that can't compute with the dtype, is gone, or refuses.
pub fn scatter_rows(
    op: &'static str,
    to: View<'_>,
    base: Option<View<'_>>,
    axis: usize,
    index: &Positions,
    updates: View<'_>,
    combine: Combine,
) -> Result<()> {
    let places = to.layout.shape()[axis];
    let (to_rows, rows) = (axis_first(to.layout, axis), axis_first(updates.layout, axis));
    let base_rows = base.map(|base| axis_first(base.layout, axis));
    let base = base.zip(base_rows.as_ref()).map(|(base, layout)| View { layout, ..base });
    let keys = Keys { words: index.words(), count: index.count()?, places };
    let (to, updates) = (View { layout: &to_rows, ..to }, View { layout: &rows, ..updates });
    scatter(op, to, base, &keys, updates, combine)
}

/// The place that each entry names.
pub(super) struct Keys<'a> {
    pub(super) words: &'a Buffer,
    pub(super) count: u32,
    pub(super) places: usize,
}

/// Places for each entry, up to which a table of all of them is cheaper than a sort of the entries.
const DENSE: usize = 16;

/// `to = base; to[key] (combine)= updates[i]`, for i in order, where places and entries come first in
/// the row-major order of `to` and `updates`.
pub(super) fn scatter(
    op: &'static str,
    to: View<'_>,
    base: Option<View<'_>>,
    keys: &Keys<'_>,
    updates: View<'_>,
    combine: Combine,
) -> Result<()> {
    let elements = count(to.layout.numel())?;
    if elements == 0 {
        return Ok(());
    }
    let width = elements / count(keys.places)?;
    let call = Call { to, base, updates, width, places: count(keys.places)?, entries: keys.count };
    let Combine::Reduce { reduce, include_self } = combine else {
        return call.assign(keys);
    };
    to.buffer.gpu().expect_arithmetic(op, to.dtype)?;
    let sorted = sort::sort(keys.words, keys.count, keys.places)?;
    call.reduce(&sorted, (reduce, include_self))
}

struct Call<'a> {
    to: View<'a>,
    base: Option<View<'a>>,
    updates: View<'a>,
    /// Elements of a row.
    width: u32,
    places: u32,
    entries: u32,
}

impl<'a> Call<'a> {
    /// Whether to go through all places; else through the entries. What is fresh is written
    /// everywhere.
    fn by_place(&self) -> bool {
        self.base.is_some() || self.places <= self.entries
    }

    /// The threads that go through the entries.
    fn threads(&self) -> Result<u32> {
        count(self.entries as usize * self.width as usize)
    }

    /// The body with what it reads: updates, and the base if there is one.
    fn kernel(&self, name: &'static str, body: &'static str) -> Result<Kernel<'a>> {
        let kernel = Kernel::new(name, body, self.to.buffer)
            .params(&[self.width, self.entries])
            .read("u", self.updates)?;
        match self.base {
            Some(base) => kernel.with("base", include_str!("with_base.wgsl")).read("b", base),
            None => Ok(kernel.with("here", include_str!("without_base.wgsl"))),
        }
    }

    fn assign(&self, keys: &Keys<'_>) -> Result<()> {
        if self.by_place() || self.places as usize / DENSE <= self.entries as usize {
            let table = winners(keys.words, self.entries, self.places)?;
            if self.by_place() {
                let kernel = self.kernel("assign_places", include_str!("assign_places.wgsl"))?;
                return kernel.words("table", &table).to(self.to);
            }
            let kernel = self.kernel("assign", include_str!("assign.wgsl"))?;
            let kernel = kernel.words("keys", keys.words).words("table", &table);
            return kernel.put(self.to, self.threads()?);
        }
        let sorted = sort::sort(keys.words, self.entries, keys.places)?;
        self.kernel("assign_sorted", include_str!("assign_sorted.wgsl"))?
            .words("keys", &sorted.keys)
            .words("order", &sorted.order)
            .put(self.to, self.threads()?)
    }

    /// A body that reduces, and what it needs for that.
    fn reducing<'k>(
        &self,
        (name, body): (&'static str, &'static str),
        sorted: &'k sort::Sorted,
        (reduce, include_self): (Reduce, bool),
    ) -> Result<Kernel<'k>>
    where
        'a: 'k,
    {
        let (how, text) = reduction(reduce);
        let kernel: Kernel<'k> = self.kernel(name, body)?;
        Ok(kernel
            .numbers(self.to.dtype)
            .with(how, text)
            .with("", include_str!("update.wgsl"))
            .constant("OWN", include_self.into())
            .constant("LONG", LONG)
            .words("order", &sorted.order))
    }

    fn reduce(&self, sorted: &sort::Sorted, how: (Reduce, bool)) -> Result<()> {
        if self.by_place() {
            let body = ("reduce_places", include_str!("reduce_places.wgsl"));
            let ends = sorted.ends(self.entries, self.places)?;
            self.reducing(body, sorted, how)?.words("ends", &ends).to(self.to)?;
        } else {
            let body = ("reduce_entries", include_str!("reduce_entries.wgsl"));
            let kernel = self.reducing(body, sorted, how)?.words("keys", &sorted.keys);
            kernel.put(self.to, self.threads()?)?;
        }
        // As many places as may have more entries.
        match self.entries / LONG {
            0 => Ok(()),
            most => self.reduce_long(sorted, how, most),
        }
    }

    /// The places of very many entries, of which there are `most` at most.
    fn reduce_long(&self, sorted: &sort::Sorted, how: (Reduce, bool), most: u32) -> Result<()> {
        let list = zeros(self.to.buffer, 1 + most)?;
        Kernel::new("long_places", include_str!("long_places.wgsl"), &list)
            .constant("LONG", LONG)
            .words("keys", &sorted.keys)
            .operand("list", &list, 4, Access::Atomic)
            .run(self.entries)?;
        let (size, kept) = accumulator(how.0, self.to.dtype);
        let threads = count(most as usize * self.width as usize)?;
        let acc = Buffer::on(self.to.buffer.gpu(), threads as usize * size)?;
        let parts = (self.entries - 1) / SPAN;
        for part in 0..=parts {
            let body = match part == parts {
                true => ("reduce_end", include_str!("reduce_end.wgsl")),
                false => ("reduce_part", include_str!("reduce_part.wgsl")),
            };
            let access = if part == parts { Access::Read } else { Access::Write };
            let kernel = self
                .reducing(body, sorted, how)?
                .with(kept.0, kept.1)
                .with("", include_str!("segment.wgsl"))
                .with("", include_str!("reduce_long.wgsl"))
                .constant("SPAN", SPAN)
                .params(&[part])
                .words("keys", &sorted.keys)
                .words("list", &list)
                .operand("acc", &acc, size, access);
            if part == parts {
                kernel.put(self.to, threads)?;
            } else {
                let here = "fn here(i: u32) -> u32 { return place(i); }\n";
                kernel.with("", here).read("to", self.to)?.run(threads)?;
            }
        }
        Ok(())
    }
}

/// Entries of a place from which it is done apart. A device in software ends loops after 65,535 steps
/// and says nothing.
const LONG: u32 = 1 << 15;

/// Entries that a thread joins at a time then: sixteen a step.
const SPAN: u32 = 16 << 15;

/// Bytes of what is accumulated, and how it is kept from part to part.
fn accumulator(reduce: Reduce, dtype: DType) -> (usize, (&'static str, &'static str)) {
    let whole = matches!(dtype.kind(), Kind::Integer | Kind::Bool);
    if reduce == Reduce::Mean && whole {
        let text = "alias AW = vec4<u32>;\nfn acc_num(w: AW) -> A { return w; }\n\
                    fn acc_raw(a: A) -> AW { return a; }\n";
        return (16, ("acc128", text));
    }
    let text = "alias AW = W;\nfn acc_num(w: AW) -> A { return wide_num(w); }\n\
                fn acc_raw(a: A) -> AW { return wide_raw(a); }\n";
    (wide_size(dtype), ("acc", text))
}

/// What is accumulated, and how.
fn reduction(reduce: Reduce) -> (&'static str, &'static str) {
    macro_rules! plain {
        ($join:literal) => {
            concat!(
                "alias A = N;\nfn lift(n: N) -> A { return n; }\n",
                "fn meet(a: A, b: A) -> A { return ",
                $join,
                "(a, b); }\nfn finish(a: A, count: u32) -> N { return a; }\n"
            )
        };
    }
    match reduce {
        Reduce::Sum => ("sum", plain!("add")),
        Reduce::Mul => ("mul", plain!("mul")),
        Reduce::Amax => ("amax", plain!("larger")),
        Reduce::Amin => ("amin", plain!("smaller")),
        Reduce::Mean => (
            "mean",
            "alias A = M;\nfn lift(n: N) -> A { return mean_lift(n); }\n\
             fn meet(a: A, b: A) -> A { return mean_add(a, b); }\n\
             fn finish(a: A, count: u32) -> N { return mean_end(a, count); }\n",
        ),
    }
}
