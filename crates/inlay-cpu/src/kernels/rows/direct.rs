//! Combines the entries directly with their places, in index order.
//!
//! Each thread owns a range of places. It reads the index block by block, lists the entries that
//! name a place of its range, and writes their rows. If the elements of a row are further apart
//! than the places, rows are also split into slabs, which threads can share. Contiguous rows of one
//! value have separate loops, in `values`.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{Combine, Reduce, Result};
use smallvec::SmallVec;

use super::grouped::LINE;
use super::values::{assign_values, join_all, join_words};
use super::write::{Counted, Everything, Named, Note, assign, divide, join, words_of_counts};
use super::{RowScatter, SHORT_ROW};
use crate::kernels::copy::copy_to;
use crate::kernels::listing::{BLOCK, IndexReader, List, Values, shares};
use crate::kernels::positions::Shared;
use crate::kernels::reducer::{Reducer, dispatch_reduce, prefetch, prefetch_far, rows_ahead};
use crate::memory::Space;
use crate::number::dispatch_width;
use crate::threads;
use crate::walk::{Run, Walk};

/// Places are prefetched this many entries ahead, because the hardware prefetcher can't predict
/// their addresses. It halves the time of 10M values into 30M places, which no cache holds, and
/// costs nothing if a cache holds them.
pub(super) const AHEAD: usize = 16;

/// Of rows with a larger stride than this, only the first element is prefetched, because each
/// element would take a cache line.
const LINE_STEP: isize = LINE as isize;

/// A scatter and how its rows are split.
pub(super) struct Direct<'a> {
    pub(super) call: RowScatter<'a>,
    rows: Walk<3>,
    pub(super) steps: [isize; 3],
    /// The number of elements of a row that are written together: a slab.
    row_len: usize,
}

/// The notes that are kept about the places of a range while they are written. They are needed
/// because without `include_self` the first update replaces the old value, and because a mean needs
/// the number of its values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notes {
    Nothing,
    /// A bit for each place, which is set once an entry has named it.
    Named,
    /// The number of values in the sum of each place: a `u8`, with a list of overflows.
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

    /// Returns how many words the notes of `places` take, if the index has `entries`.
    fn words(self, places: usize, entries: usize) -> usize {
        match self {
            Notes::Nothing => 0,
            Notes::Named => places.div_ceil(u32::BITS as usize),
            Notes::Counted { .. } => words_of_counts(places, entries),
        }
    }

    /// Sets the words to their state before the first entry.
    fn clear(self, words: &mut [u32]) {
        words.fill(match self {
            Notes::Counted { include_self: true } => u32::from_ne_bytes([1; 4]),
            _ => 0,
        });
        // The last word is the number of overflows.
        if let (Notes::Counted { .. }, Some(last)) = (self, words.last_mut()) {
            *last = 0;
        }
    }
}

/// A block of the index, the range of places, and the run of elements of a row that are written.
pub(super) struct Task<'t> {
    pub(super) run: Run<3>,
    pub(super) own: &'t Range<usize>,
    /// The row of updates of the block's first entry; 0 if rows are selected.
    first: usize,
    pub(super) values: Values<'t>,
}

/// Writes a block without a list. Returns false if a list is needed; until then it has written
/// nothing, or only elements that are written again by the list.
type WriteAtOnce = unsafe fn(&Direct<'_>, &Task<'_>, &mut List, &mut [u32]) -> bool;
/// Writes the listed entries of a block.
type WriteBlock = unsafe fn(&Direct<'_>, &Task<'_>, &List, &mut [u32]);

/// The functions that write a block.
#[derive(Clone, Copy)]
struct Way {
    /// The function that is tried first, if there is one.
    quick: Option<WriteAtOnce>,
    /// The function for blocks that need a list.
    block: WriteBlock,
}

/// The functions that write the entries of a call.
#[derive(Clone, Copy)]
struct Writers {
    /// Whether lists have the updates of the entries, one word each, instead of their numbers.
    words: bool,
    blocks: Way,
    /// The same for all slabs but the first, if they can use the notes of the first slab.
    again: Option<Way>,
    /// The function that is called after the last block of a range.
    end: Option<unsafe fn(&Direct<'_>, &Task<'_>, &mut [u32])>,
}

impl<'a> Direct<'a> {
    pub(super) fn new(call: &RowScatter<'a>) -> Self {
        // The struct is large, so it is built in place and not moved.
        let mut direct = Direct { call: *call, rows: call.rows(), steps: call.steps(), row_len: 1 };
        // If the elements of a row are further apart than the places, each element is a slab of its
        // own. So updates are read and places are written in the order of memory.
        let apart = direct.rows.run_strides()[0].unsigned_abs() > direct.steps[0].unsigned_abs();
        if !apart {
            direct.row_len = direct.rows.run_len();
        }
        direct
    }

    /// Returns how many elements of a row are written together: a slab.
    pub(super) fn row_len(&self) -> usize {
        self.row_len
    }

    /// Returns whether the elements of a slab are not contiguous.
    pub(super) fn with_gaps(&self) -> bool {
        let size = self.call.dst.dtype().size() as isize;
        let [to, _, from] = self.rows.run_strides();
        self.row_len > 1 && (to != size || from != size)
    }

    /// Returns whether a thread reads the index only once, because a row is one slab.
    pub(super) fn reads_index_once(&self) -> bool {
        self.rows.len() == self.row_len
    }

    pub(super) fn places(&self) -> usize {
        self.call.dst.layout().shape()[self.call.axis]
    }

    /// Writes all entries. Returns false if an entry is out of range; then some of the places were
    /// written.
    pub(super) fn run(&self, entries: &IndexReader<'_>) -> Result<bool> {
        let RowScatter { dst, base, .. } = self.call;
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
            copy_to(dst, base);
        }
        let writers = self.writers();
        let space = Shared(space.as_mut_ptr());
        let inside = AtomicBool::new(true);
        threads::run(bundles * ranges.len(), |item| {
            let (bundle, range) = (item / ranges.len(), item % ranges.len());
            let before = bundle * all_words + words[..range].iter().sum::<usize>();
            // SAFETY: the buffer has `all_words` initialized words for each bundle, and each range
            // has its own part of them. So no other item has these words.
            let space =
                unsafe { std::slice::from_raw_parts_mut(space.get().add(before), words[range]) };
            let slabs = threads::part_of(slabs, bundles, bundle);
            if !self.item(entries, slabs, &ranges[range], (notes, space), writers) {
                inside.store(false, Relaxed);
            }
        });
        Ok(inside.into_inner())
    }

    /// Writes the slabs of one bundle at the places of one range. Returns whether all entries that
    /// were read are in range.
    fn item(
        &self,
        entries: &IndexReader<'_>,
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
                    // SAFETY: `RowScatter::expect_sound` has checked the views. The walk keeps the
                    // run inside of the rows. Ranges lie inside of the axis of the destination, and
                    // blocks inside of the entries. `List` keeps listed places inside of the range
                    // and entries inside of the block, even if another thread changes the index.
                    // Items have different slabs or different ranges of places, and different
                    // words.
                    unsafe {
                        if way.quick.is_some_and(|quick| quick(self, &task, &mut list, space)) {
                            continue;
                        }
                        // If the index is one block, its list is made once for all slabs, unless it
                        // holds updates.
                        if !single || writers.words || slab == slabs.start {
                            inside &= self.list(&task, block, writers.words, &mut list);
                        }
                        (way.block)(self, &task, &list, space);
                    }
                }
                if let Some(end) = writers.end {
                    let values = entries.values(0..0, &mut space_of_values);
                    // SAFETY: as above; there are no entries.
                    unsafe { end(self, &Task { run, own, first: 0, values }, space) };
                }
            });
            if !inside {
                break;
            }
        }
        inside
    }

    /// Lists the entries of a block whose places a task owns. Returns whether all entries are in
    /// range.
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
        // SAFETY: the caller's promise. With `words`, a row of updates is one contiguous word for
        // each entry, as `of_values` has checked.
        unsafe {
            let (_, updates) = self.origins(task);
            if let Some(selected) = self.call.selected {
                let selected = &selected[block];
                let ahead = (selected.as_ptr().cast(), size_of::<i64>() as isize);
                let inside = list.fill(values, size, own, ahead);
                list.replace_by(selected);
                return inside;
            }
            match words {
                true => list.fill_with_words(values, size, own, updates.cast()),
                false => list.fill(values, size, own, (updates, self.steps[2])),
            }
        }
    }

    /// Returns whether the rows of destination and updates are contiguous single values.
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
                // With `include_self`, all slabs have the same counts, and a value never replaces
                // the old one. So only the first slab counts.
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
            join_words::<T, R, N> as WriteBlock
        } else {
            join::<T, R, N>
        };
        Way { quick: values.then_some(join_all::<T, R, N>), block }
    }
}

impl Direct<'_> {
    /// Returns the addresses of the range's first place and of the update of the block's first
    /// entry.
    ///
    /// # Safety
    /// Both are inside of their axes, and the run inside of the rows.
    pub(super) unsafe fn origins(&self, task: &Task<'_>) -> (*mut u8, *const u8) {
        let to = task.run.offsets[0] + task.own.start as isize * self.steps[0];
        let from = task.run.offsets[2] + task.first as isize * self.steps[2];
        // SAFETY: the caller's promise.
        unsafe { (self.call.dst.origin().offset(to), self.call.updates.origin().offset(from)) }
    }

    /// [`Direct::each`] for short rows if the list has all entries of the block. It has less
    /// overhead per entry. (500k rows of 8 `f32` into 50k: 1.0 ms instead of 1.7.)
    ///
    /// # Safety
    /// As for [`Direct::each`].
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

    /// Calls `visit` with each listed place, its address and the address of its update.
    ///
    /// # Safety
    /// As for [`Direct::origins`], for the listed places and entries.
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
        let prefetches = self.prefetches(task);
        for (k, (&place, &entry)) in places.iter().zip(entries).enumerate() {
            let next = (k + prefetches.ahead).min(last);
            let (next_place, next_entry) = (to_place(places[next]), from_entry(entries[next]));
            if !prefetches.short {
                prefetches.long(next_place, next_entry);
            } else {
                prefetch(next_place, 1);
                if prefetches.with_gaps {
                    prefetch(next_entry, 1);
                }
            }
            visit(place as usize, to_place(place), from_entry(entry));
        }
    }

    /// Returns how [`Direct::each`] prefetches the rows of a task.
    fn prefetches(&self, task: &Task<'_>) -> Prefetches {
        // If one thread reads all updates in the order of memory, the hardware prefetches them.
        let in_order = task.own.len() == self.places() && self.call.selected.is_none();
        let with_gaps = !in_order && self.steps[2].unsigned_abs() > 8;
        let span = |n: usize| match task.run.strides[n] {
            stride @ 0..=LINE_STEP => (stride as usize * task.run.len).min(SHORT_ROW.get()),
            _ => 1,
        };
        let (to_span, from_span) = (span(0), if with_gaps { span(2) } else { 0 });
        let short = to_span.max(from_span) <= LINE;
        let rows = rows_ahead(to_span);
        let ahead = if with_gaps && !short { rows } else { AHEAD.min(rows) };
        Prefetches { ahead, short, with_gaps, to_span, from_span }
    }
}

/// How the rows of a task are prefetched.
struct Prefetches {
    /// The number of entries between the prefetch of a row and its use.
    ahead: usize,
    /// Whether places and updates take one cache line each.
    short: bool,
    /// Whether there are gaps between the updates, so that they are prefetched too.
    with_gaps: bool,
    /// The bytes that are prefetched of a place, and of an update.
    to_span: usize,
    from_span: usize,
}

impl Prefetches {
    /// Prefetches rows of several cache lines. It is a function of its own, because empty loops
    /// would take a sixth of the time of rows of 8 `f32`.
    ///
    /// With gaps between the updates, there are more outstanding misses than the first-level cache
    /// allows, so lines are prefetched into the second-level cache. Without gaps the first level is
    /// faster. (Prefetches into the first and the second level: 200k rows of 256 bytes into 20k on
    /// one thread take 3.5 and 6 ms, 100k rows of 256 bytes into 1M on two threads 4.5 and 2.4 ms.)
    #[inline(never)]
    fn long(&self, place: *const u8, update: *const u8) {
        if self.with_gaps {
            prefetch_far(place, self.to_span);
            prefetch_far(update, self.from_span);
        } else {
            prefetch(place, self.to_span);
        }
    }
}
