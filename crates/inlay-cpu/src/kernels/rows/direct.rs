//! Rows written directly, in index order.
//!
//! Threads own ranges of places, or rows' elements where there are enough that lie apart. Each goes
//! through the index block by block, lists what falls into its range, and writes that. Rows of one
//! value that lie side by side have loops of their own, in `values`.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{Combine, Reduce, Result};
use smallvec::SmallVec;

use super::grouped::LINE;
use super::values::{assign_values, join_all, join_words};
use super::write::{Counted, Everything, Named, Note, assign, divide, join, words_of_counts};
use super::{Call, SHORT_ROW};
use crate::kernels::copy::copy;
use crate::kernels::listing::{BLOCK, Entries, List, Values, shares};
use crate::kernels::positions::Shared;
use crate::kernels::reducer::{Reducer, dispatch_reduce, prefetch, prefetch_far, rows_ahead};
use crate::memory::Space;
use crate::number::dispatch_width;
use crate::threads;
use crate::walk::{Run, Walk};

/// Entries that a place is asked for ahead of its use, which its address does not follow from. It
/// halves the time of 10M values into 30M, which no cache holds, and costs nothing where one does.
pub(super) const AHEAD: usize = 16;

/// Elements of a row that lie further apart are not asked for: it would be a line for each.
const LINE_STEP: isize = LINE as isize;

/// A scatter and how its rows are cut.
pub(super) struct Direct<'a> {
    pub(super) call: Call<'a>,
    rows: Walk<3>,
    pub(super) steps: [isize; 3],
    /// Elements of a row that are written together.
    row_len: usize,
}

/// What is noted of the places of a range while they are written: what a place holds at first does
/// not take part, and a mean needs its count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notes {
    Nothing,
    /// A bit a place: whether it was named.
    Named,
    /// A byte a place, and more where that is not enough: how many values it is the sum of.
    Counted {
        include_self: bool,
    },
}

impl Notes {
    fn of(combine: Combine) -> Self {
        match combine {
            Combine::Reduce { reduce: Reduce::Mean, include_self } => {
                Notes::Counted { include_self }
            }
            Combine::Reduce { include_self: false, .. } => Notes::Named,
            _ => Notes::Nothing,
        }
    }

    /// How many words `places` need, which get up to `entries`.
    fn words(self, places: usize, entries: usize) -> usize {
        match self {
            Notes::Nothing => 0,
            Notes::Named => places.div_ceil(u32::BITS as usize),
            Notes::Counted { .. } => words_of_counts(places, entries),
        }
    }

    /// Sets the words of places that were not named yet.
    fn clear(self, words: &mut [u32]) {
        words.fill(match self {
            Notes::Counted { include_self: true } => u32::from_ne_bytes([1; 4]),
            _ => 0,
        });
        // Nothing was noted aside.
        if let (Notes::Counted { .. }, Some(last)) = (self, words.last_mut()) {
            *last = 0;
        }
    }
}

/// A part of the index, and the run of elements to be written by it.
pub(super) struct Task<'t> {
    pub(super) run: Run<3>,
    pub(super) own: &'t Range<usize>,
    /// The number of the block's first entry.
    first: usize,
    pub(super) values: Values<'t>,
}

type Quick = unsafe fn(&Direct<'_>, &Task<'_>, &mut List, &mut [u32]) -> bool;
type Write = unsafe fn(&Direct<'_>, &Task<'_>, &List, &mut [u32]);

/// How a block is written.
#[derive(Clone, Copy)]
struct Way {
    /// Without a list; or tells that it needs one, by which all of the block is written.
    quick: Option<Quick>,
    /// By a list.
    block: Write,
}

/// How a call's entries are written.
#[derive(Clone, Copy)]
struct Writers {
    /// Whether lists have what the entries stand for, which is a word each, instead of their numbers.
    words: bool,
    blocks: Way,
    /// The same for slabs after the first, where that has noted what is so for all of them.
    again: Option<Way>,
    /// Ends a range.
    end: Option<unsafe fn(&Direct<'_>, &Task<'_>, &mut [u32])>,
}

impl<'a> Direct<'a> {
    pub(super) fn new(call: &Call<'a>) -> Self {
        // It is large, so it is made where it stays.
        let mut direct = Direct { call: *call, rows: call.rows(), steps: call.steps(), row_len: 1 };
        // Elements that lie further apart than places are rows of their own: so a row of the
        // updates is read, and one of the destination written, in the order of memory.
        let apart = direct.rows.run_strides()[0].unsigned_abs() > direct.steps[0].unsigned_abs();
        if !apart {
            direct.row_len = direct.rows.run_len();
        }
        direct
    }

    /// How many elements of a row are written together.
    pub(super) fn row_len(&self) -> usize {
        self.row_len
    }

    /// Whether the elements of a row lie apart.
    pub(super) fn with_gaps(&self) -> bool {
        let size = self.call.dst.dtype().size() as isize;
        let [to, _, from] = self.rows.run_strides();
        self.row_len > 1 && (to != size || from != size)
    }

    /// Whether a thread goes through the index no more than once.
    pub(super) fn reads_index_once(&self) -> bool {
        self.rows.len() == self.row_len
    }

    pub(super) fn places(&self) -> usize {
        self.call.dst.layout().shape()[self.call.axis]
    }

    /// Writes. False when an entry is out of range: then a part was written.
    pub(super) fn run(&self, entries: &Entries<'_>) -> Result<bool> {
        let Call { dst, base, .. } = self.call;
        let size = dst.dtype().size();
        let slabs = self.rows.len() / self.row_len;
        let cost = 2 * self.row_len * size + size_of::<i64>();
        let wanted = threads::parts(entries.len().saturating_mul(slabs), cost);
        let threads = wanted.min(threads::num_threads());
        let ranges = shares(entries, self.places(), threads.div_ceil(slabs));
        let bundles = if slabs < threads { slabs } else { wanted.min(slabs) };

        let notes = Notes::of(self.call.combine);
        let words: SmallVec<[usize; 4]> =
            ranges.iter().map(|range| notes.words(range.len(), entries.len())).collect();
        let all_words: usize = words.iter().sum();
        let mut space = Space::<u32>::new(all_words.saturating_mul(bundles))?;
        if let Some(base) = base {
            copy(dst, base);
        }
        let writers = self.writers();
        let space = Shared(space.as_mut_ptr());
        let inside = AtomicBool::new(true);
        threads::run(bundles * ranges.len(), |item| {
            let (bundle, range) = (item / ranges.len(), item % ranges.len());
            let before = bundle * all_words + words[..range].iter().sum::<usize>();
            // SAFETY: every item has its own words.
            let space =
                unsafe { std::slice::from_raw_parts_mut(space.get().add(before), words[range]) };
            let slabs = threads::part_of(slabs, bundles, bundle);
            if !self.item(entries, slabs, &ranges[range], (notes, space), writers) {
                inside.store(false, Relaxed);
            }
        });
        Ok(inside.into_inner())
    }

    /// The slabs of one bundle at the places of one range.
    fn item(
        &self,
        entries: &Entries<'_>,
        slabs: Range<usize>,
        own: &Range<usize>,
        (notes, space): (Notes, &mut [u32]),
        writers: Writers,
    ) -> bool {
        let (mut list, mut space_of_values) =
            (List::new(), [const { MaybeUninit::uninit() }; BLOCK]);
        let mut inside = true;
        let single = entries.len() <= BLOCK;
        for slab in slabs.clone() {
            let again = writers.again.filter(|_| slab > slabs.start);
            let way = again.unwrap_or(writers.blocks);
            if again.is_none() {
                notes.clear(space);
            }
            let elements = slab * self.row_len..(slab + 1) * self.row_len;
            self.rows.runs(elements, |run| {
                for block in entries.blocks() {
                    let values = entries.values(block.clone(), &mut space_of_values);
                    let first = if self.call.selected.is_some() { 0 } else { block.start };
                    let task = Task { run, own, first, values };
                    // SAFETY: the run lies inside of the rows; listed places lie inside of the
                    // range and listed entries inside of the block, as `List` promises; threads
                    // have different elements, or different places.
                    unsafe {
                        if way.quick.is_some_and(|quick| quick(self, &task, &mut list, space)) {
                            continue;
                        }
                        // The list of an index that is one block serves all slabs, but for what the
                        // entries stand for.
                        if !single || writers.words || slab == slabs.start {
                            inside &= self.list(&task, block, writers.words, &mut list);
                        }
                        (way.block)(self, &task, &list, space);
                    }
                }
                if let Some(end) = writers.end {
                    let values = entries.values(0..0, &mut space_of_values);
                    // SAFETY: as above.
                    unsafe { end(self, &Task { run, own, first: 0, values }, space) };
                }
            });
            if !inside {
                break;
            }
        }
        inside
    }

    /// Lists what a task owns of a block of entries. Tells whether all of them are on the axis.
    ///
    /// # Safety
    /// As for [`Direct::origins`].
    unsafe fn list(
        &self,
        task: &Task<'_>,
        block: Range<usize>,
        words: bool,
        list: &mut List,
    ) -> bool {
        let (values, size, own) = (task.values, self.places(), task.own);
        // SAFETY: the caller's promise; there is a word for each entry where a row is one.
        unsafe {
            let (_, updates) = self.origins(task);
            if let Some(selected) = self.call.selected {
                let selected = &selected[block];
                let ahead = (selected.as_ptr().cast(), size_of::<i64>() as isize);
                let inside = list.fill(values, size, own, ahead);
                list.select(selected);
                return inside;
            }
            match words {
                true => list.fill_with_words(values, size, own, updates.cast()),
                false => list.fill(values, size, own, (updates, self.steps[2])),
            }
        }
    }

    /// Whether rows are single values that lie side by side.
    fn of_values(&self) -> bool {
        let size = self.call.dst.dtype().size() as isize;
        self.call.selected.is_none()
            && self.row_len == 1
            && self.steps[0] == size
            && self.steps[2] == size
    }

    fn writers(&self) -> Writers {
        let (dst, updates) = (self.call.dst, self.call.updates);
        let (size, values) = (dst.dtype().size(), self.of_values());
        let Combine::Reduce { reduce, .. } = self.call.combine else {
            let blocks = dispatch_width!(size, W => {
                Way { quick: values.then_some(assign_values::<W> as _), block: assign::<W> }
            });
            return Writers { words: false, blocks, again: None, end: None };
        };
        let notes = Notes::of(self.call.combine);
        let words = values && size == size_of::<u32>();
        assert_eq!(dst.dtype(), updates.dtype(), "numbers of one dtype");
        dispatch_reduce!(reduce, dst.dtype(), (T, R) => {
            let all = Way::of_reduction::<T, R, Everything>;
            if !<R as Reducer<T>>::IN_PLACE {
                unreachable!("only what is reduced in place is written directly")
            } else if <R as Reducer<T>>::COUNTS {
                // What a place holds takes part from the start: then it is enough that one slab
                // counts for all.
                let counted = notes == Notes::Counted { include_self: true };
                let again = counted.then(|| all(values));
                let blocks = Way::of_reduction::<T, R, Counted>(values);
                Writers { words, blocks, again, end: Some(divide::<T, R>) }
            } else if notes == Notes::Named {
                let blocks = Way::of_reduction::<T, R, Named>(values);
                Writers { words, blocks, again: None, end: None }
            } else {
                Writers { words, blocks: all(values), again: None, end: None }
            }
        })
    }
}

impl Way {
    fn of_reduction<T: Copy, R: Reducer<T>, N: Note>(values: bool) -> Self {
        let block = if values && size_of::<T>() == size_of::<u32>() {
            join_words::<T, R, N> as Write
        } else {
            join::<T, R, N>
        };
        Way { quick: values.then_some(join_all::<T, R, N>), block }
    }
}

impl Direct<'_> {
    /// Where the range's first place and the block's first entry lie.
    ///
    /// # Safety
    /// They are inside of their axes, and the run inside of the rows.
    pub(super) unsafe fn origins(&self, task: &Task<'_>) -> (*mut u8, *const u8) {
        let to = task.run.offsets[0] + task.own.start as isize * self.steps[0];
        let from = task.run.offsets[2] + task.first as isize * self.steps[2];
        // SAFETY: the caller's promise.
        unsafe { (self.call.dst.origin().offset(to), self.call.updates.origin().offset(from)) }
    }

    /// [`Direct::each`] for short rows of which a list has all, in order: little else is done for each.
    /// (500k rows of 8 floats into 50k: 1.0 ms instead of 1.7.)
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn each_in_order(
        &self,
        task: &Task<'_>,
        list: &List,
        mut visit: impl FnMut(usize, *mut u8, *const u8),
    ) {
        let ([to_step, _, from_step], places) = (self.steps, list.places());
        let last = places.len().saturating_sub(1);
        // SAFETY: the caller's promise.
        unsafe {
            let (to, from) = self.origins(task);
            for (k, &place) in places.iter().enumerate() {
                let next = places[(k + AHEAD).min(last)];
                prefetch(to.wrapping_offset(next as isize * to_step), 1);
                let to = to.offset(place as isize * to_step);
                visit(place as usize, to, from.offset(k as isize * from_step));
            }
        }
    }

    /// Calls `visit` with each listed place, where it and its entry lie.
    ///
    /// # Safety
    /// As for [`Direct::origins`], with what is listed.
    #[inline(always)]
    pub(super) unsafe fn each(
        &self,
        task: &Task<'_>,
        list: &List,
        mut visit: impl FnMut(usize, *mut u8, *const u8),
    ) {
        let [to_step, _, from_step] = self.steps;
        let (places, entries) = (list.places(), list.beside());
        // SAFETY: the caller's promise.
        let (to, from) = unsafe { self.origins(task) };
        let to_place = |place: u32| to.wrapping_offset(place as isize * to_step);
        let last = places.len().saturating_sub(1);
        let from_entry = |entry: u32| from.wrapping_offset(entry as isize * from_step);
        // What one thread reads in the order of memory, the CPU asks for itself.
        let in_order = task.own.len() == self.places() && self.call.selected.is_none();
        let with_gaps = !in_order && from_step.unsigned_abs() > 8;
        let span = |n: usize| match task.run.strides[n] {
            stride @ 0..=LINE_STEP => (stride as usize * task.run.len).min(SHORT_ROW.get()),
            _ => 1,
        };
        let (to_span, from_span) = (span(0), if with_gaps { span(2) } else { 0 });
        let short = to_span.max(from_span) <= LINE;
        // With gaps, more is on its way than the first cache can ask for; without, that is the faster one.
        // (200k rows of 256 bytes into 20k on one thread: 3.5 ms, into the second cache 6; 100k of 256
        // bytes into 1M on two threads: 4.5 ms, into the second 2.4.)
        let far = with_gaps && !short;
        let ahead = if far { rows_ahead(to_span) } else { AHEAD.min(rows_ahead(to_span)) };
        for (k, (&place, &entry)) in places.iter().zip(entries).enumerate() {
            let next = (k + ahead).min(last);
            let (next_place, next_entry) = (to_place(places[next]), from_entry(entries[next]));
            // Loops that do nothing would take a sixth of the time of rows of 8 floats.
            if far {
                prefetch_far(next_place, to_span);
                prefetch_far(next_entry, from_span);
            } else if short {
                prefetch(next_place, 1);
                if with_gaps {
                    prefetch(next_entry, 1);
                }
            } else {
                prefetch(next_place, to_span);
            }
            visit(place as usize, to_place(place), from_entry(entry));
        }
    }
}
