//! Combines the entries directly with their places, in index order.
//!
//! The index is read block by block, and the rows of each block are written; `plans` says by which
//! thread. If the elements of a row are further apart than the places, rows are split into slabs,
//! which threads can share. Contiguous rows of one value have separate loops, in `values`.

use std::ops::Range;

use inlay_core::Combine;

use super::finish::{divide, merge};
use super::grouped::LINE;
use super::notes::{Counted, Everything, Named, Note, Notes};
use super::values::{assign_scanned, assign_values, join_scanned_values, join_values};
use super::write::{NEAR, assign, join, join_scanned};
use super::{RowScatter, SHORT_ROW};
use crate::arch::caches::caches;
use crate::kernels::listing::{Repeated, Values, repeats};
use crate::kernels::partition::Item;
use crate::kernels::reducer::{
    Reducer, dispatch_reduce, is_exact, prefetch, prefetch_far, rows_ahead,
};
use crate::memory::Plain;
use crate::number::dispatch_width;
use crate::walk::{Run, Walk};

/// Places are prefetched this many entries ahead, because the hardware prefetcher can't predict
/// their addresses. [`Direct::ahead`] tells when loops of single values leave it out.
const AHEAD: usize = 16;

/// The same if the last-level cache does not hold the places. (Sums of 10M values on one thread, 16, 64, 96
/// and 192 entries ahead: into 5M places 70, 37, 27 and 32 ms; into 30M 94, 54, 49 and 56 ms. Into 1M
/// places, which the cache holds, 11.5 ms 16 ahead and 16.5 ms 64 ahead.)
const FAR_AHEAD: usize = 96;

/// Of rows with a larger stride than this, only the first element is prefetched, because each
/// element would take a cache line.
const LINE_STEP: isize = LINE as isize;

/// A scatter and how its rows are split.
pub(super) struct Direct<'a> {
    pub(super) call: RowScatter<'a>,
    pub(super) rows: Walk<3>,
    pub(super) steps: [isize; 3],
    /// The number of elements of a row that are written together: a slab.
    row_len: usize,
}

/// Entries that are written together.
#[derive(Clone, Copy)]
pub(super) enum Listed<'t> {
    /// The places of consecutive entries. The numbers of their updates are consecutive too.
    InOrder(&'t [u32]),
    /// Entries with the numbers of their updates, and entries that come after these.
    Numbered(&'t [Item<u32>], &'t [Item<u32>]),
    /// Entries with their updates, which are single values of up to 4 or up to 8 bytes.
    Words(&'t [Item<u32>]),
    LongWords(&'t [Item<u64>]),
}

impl Listed<'_> {
    /// Returns whether entries name the place of the one before as often as `often` says, as far as a
    /// sample tells.
    pub(super) fn repeats(self, often: Repeated) -> bool {
        match self {
            Listed::InOrder(places) => repeats(often, places.len(), |k| places[k]),
            Listed::Numbered(items, _) => repeats(often, items.len(), |k| items[k].place),
            Listed::Words(_) | Listed::LongWords(_) => false,
        }
    }
}

/// What is beside the place of a partitioned entry.
pub(super) trait Beside: Plain {
    /// Returns a segment of entries and the one after it as [`Listed`]. `words` tells whether they
    /// have their updates beside them.
    fn listed<'t>(segment: &'t [Item<Self>], next: &'t [Item<Self>], words: bool) -> Listed<'t>;
}

impl Beside for u32 {
    fn listed<'t>(segment: &'t [Item<u32>], next: &'t [Item<u32>], words: bool) -> Listed<'t> {
        if words { Listed::Words(segment) } else { Listed::Numbered(segment, next) }
    }
}

impl Beside for u64 {
    fn listed<'t>(segment: &'t [Item<u64>], _next: &'t [Item<u64>], _words: bool) -> Listed<'t> {
        Listed::LongWords(segment)
    }
}

/// Entries, the range of their places, and the run of elements of a row that are written.
pub(super) struct Task<'t> {
    pub(super) run: Run<3>,
    pub(super) own: &'t Range<usize>,
    /// The row of updates that has the number 0.
    pub(super) first: usize,
    pub(super) listed: Listed<'t>,
    /// The address of the first place of the range, if a copy of its places is written.
    pub(super) stage: Option<*mut u8>,
}

/// The functions that write the entries of a call.
#[derive(Clone, Copy)]
pub(super) struct Writers {
    /// The function that writes the entries of a task.
    pub(super) write: Write,
    /// The function that reads and checks index values of the whole axis itself, if there is one.
    pub(super) at_once: Option<JoinScanned>,
    /// The same for all slabs but the first, if they can use the notes of the first slab.
    pub(super) again: Option<Write>,
    /// The function that is called after the last task of a range.
    pub(super) end: Option<Write>,
}

pub(super) type Write = unsafe fn(&Direct<'_>, &Task<'_>, &mut [u32]);
pub(super) type JoinScanned = unsafe fn(&Direct<'_>, &Task<'_>, Values<'_>, &mut [u32]) -> bool;
pub(super) type AssignScanned = unsafe fn(&Direct<'_>, &Task<'_>, Values<'_>) -> Option<[usize; 2]>;
/// The type of [`merge`].
pub(super) type Merge = unsafe fn((*mut u8, *const u8), (usize, usize), &[u32], &mut [u32]);

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

    pub(super) fn slabs(&self) -> usize {
        self.rows.len() / self.row_len
    }

    pub(super) fn places(&self) -> usize {
        self.call.dst.layout().shape()[self.call.axis]
    }

    /// Returns the elements of a slab.
    pub(super) fn slab(&self, slab: usize) -> Range<usize> {
        slab * self.row_len..(slab + 1) * self.row_len
    }

    /// Returns the number of bytes of a slab.
    pub(super) fn row_bytes(&self) -> usize {
        self.row_len * self.call.dst.dtype().size()
    }

    /// Returns the function that assigns single values without a list of their places.
    pub(super) fn assigns_at_once(&self) -> Option<AssignScanned> {
        let suits = self.is_flat() && self.call.combine == Combine::Assign;
        let size = self.call.dst.dtype().size();
        suits.then(|| dispatch_width!(size, W => assign_scanned::<W> as AssignScanned))
    }

    /// Returns whether slabs are single values, which are contiguous along the axis in destination
    /// and updates.
    pub(super) fn of_values(&self) -> bool {
        let size = self.call.dst.dtype().size() as isize;
        self.call.selected.is_none()
            && self.row_len == 1
            && self.steps[0] == size
            && self.steps[2] == size
    }

    /// Returns whether there is one slab of values of up to 8 bytes, which can be moved with their
    /// places.
    pub(super) fn is_flat(&self) -> bool {
        let short = self.call.dst.dtype().size() <= size_of::<u64>();
        self.rows.len() == 1 && short && self.of_values()
    }

    /// Returns how many entries ahead the places of a range are prefetched, or `None` if that would take
    /// longer than it saves: the second-level cache holds them, or the last-level cache does and the loop is
    /// `busy` with other work for each entry, which overlaps the misses. (Sums of 10M values into 1M on two
    /// threads, where values are listed beside their places: 6.1 ms, with prefetches 7.4 ms.)
    pub(super) fn ahead(&self, own: &Range<usize>, busy: bool) -> Option<usize> {
        let bytes = own.len().saturating_mul(self.row_bytes());
        match bytes {
            _ if bytes > caches().last / 2 => Some(FAR_AHEAD),
            _ if bytes > caches().second && !busy => Some(AHEAD),
            _ => None,
        }
    }

    pub(super) fn writers(&self) -> Writers {
        let (dst, updates) = (self.call.dst, self.call.updates);
        let (size, values) = (dst.dtype().size(), self.of_values());
        let Combine::Reduce { reduce, .. } = self.call.combine else {
            let write: Write = match values {
                true => dispatch_width!(size, W => assign_values::<W>),
                false => dispatch_width!(size, W => assign::<W>),
            };
            return Writers { write, at_once: None, again: None, end: None };
        };
        let notes = Notes::of(self.call.combine);
        assert_eq!(dst.dtype(), updates.dtype(), "numbers of one dtype");
        dispatch_reduce!(reduce, dst.dtype(), (T, R) => {
            if !<R as Reducer<T>>::IN_PLACE {
                unreachable!("only what is reduced in place is written directly")
            } else if <R as Reducer<T>>::COUNTS {
                // With `include_self`, all slabs have the same counts, and a value never replaces
                // the old one. So only the first slab counts.
                let joins = match notes {
                    Notes::Counted { include_self: true } => {
                        let again = Some(self.joins::<T, R, Everything>().write);
                        Writers { again, ..self.joins::<T, R, Counted<true>>() }
                    }
                    _ => self.joins::<T, R, Counted<false>>(),
                };
                Writers { end: Some(divide::<T, R>), ..joins }
            } else if notes == Notes::Named {
                self.joins::<T, R, Named>()
            } else {
                self.joins::<T, R, Everything>()
            }
        })
    }

    /// Returns whether the call is a reduction whose partial results can be merged.
    pub(super) fn is_exact(&self) -> bool {
        match self.call.combine {
            Combine::Reduce { reduce, .. } => is_exact(reduce, self.call.dst.dtype()),
            Combine::Assign => false,
        }
    }

    /// Returns the functions that reduce entries into partial results, with notes of the places that
    /// were named, and the function that merges these. Panics unless [`Direct::is_exact`].
    pub(super) fn exact_writers(&self) -> (Writers, Merge) {
        let Combine::Reduce { reduce, .. } = self.call.combine else {
            unreachable!("assignments have no partial results")
        };
        dispatch_reduce!(reduce, self.call.dst.dtype(), (T, R) => {
            if <R as Reducer<T>>::EXACT {
                (self.joins::<T, R, Named>(), merge::<T, R> as Merge)
            } else {
                unreachable!("only exact reductions have partial results")
            }
        })
    }

    /// Returns the functions that reduce entries into their places.
    fn joins<T: Copy, R: Reducer<T>, N: Note>(&self) -> Writers {
        let (write, at_once): (Write, Option<JoinScanned>) = match self.of_values() {
            true => (join_values::<T, R, N>, Some(join_scanned_values::<T, R, N>)),
            false if self.row_len == NEAR && !self.with_gaps() => {
                (join::<T, R, N>, Some(join_scanned::<T, R, N>))
            }
            false => (join::<T, R, N>, None),
        };
        Writers { write, at_once, again: None, end: None }
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
        unsafe {
            let to = task.stage.unwrap_or(self.call.dst.origin().offset(to));
            (to, self.call.updates.origin().offset(from))
        }
    }

    /// Returns the addresses of a place and of the update of an entry.
    ///
    /// # Safety
    /// As for [`Direct::origins`].
    #[inline(always)]
    unsafe fn addresses(
        &self,
        task: &Task<'_>,
    ) -> (impl Fn(u32) -> *mut u8, impl Fn(usize) -> *const u8) {
        let [to_step, _, from_step] = self.steps;
        // SAFETY: the caller's promise.
        let (to, from) = unsafe { self.origins(task) };
        let to_place = move |place: u32| to.wrapping_offset(place as isize * to_step);
        let from_entry = move |entry: usize| from.wrapping_offset(entry as isize * from_step);
        (to_place, from_entry)
    }

    /// [`each`] for entries in index order whose places take one cache line each. The updates are
    /// read in the order of memory, so the hardware prefetches them. It has less overhead per entry
    /// than the others. (500k rows of 8 `f32` into 50k: 1.0 ms instead of 1.7.)
    ///
    /// # Safety
    /// As for [`each`].
    #[inline(always)]
    pub(super) unsafe fn each_near(&self, task: &Task<'_>, places: &[u32], mut visit: impl Visit) {
        // SAFETY: the caller's promise.
        let (to_place, from_entry) = unsafe { self.addresses(task) };
        let ahead = self.ahead(task.own, false).unwrap_or(AHEAD);
        let last = places.len().saturating_sub(1);
        for (k, &place) in places.iter().enumerate() {
            prefetch(to_place(places[(k + ahead).min(last)]), 1);
            visit.visit(place as usize, to_place(place), from_entry(k));
        }
    }

    /// [`each`] for entries whose index values are read and checked here. Returns false at the first
    /// value that is out of range.
    ///
    /// # Safety
    /// As for [`each`]; the range is the whole axis, and `values` are the entries of the task.
    #[inline(always)]
    pub(super) unsafe fn each_scanned(
        &self,
        task: &Task<'_>,
        values: Values<'_>,
        mut visit: impl Visit,
    ) -> bool {
        let places = self.places();
        let [to_step, _, from_step] = self.steps;
        // SAFETY: the caller's promise.
        let (to, from) = unsafe { self.origins(task) };
        let to_place = |place: i64| to.wrapping_offset((place as isize).wrapping_mul(to_step));
        let ahead = self.ahead(task.own, false);
        for k in 0..values.len() {
            let Some(place) = values.place(k, places) else { return false };
            if let Some(ahead) = ahead {
                prefetch(to_place(values.ahead(k + ahead)), 1);
            }
            visit.visit(
                place,
                to_place(place as i64),
                from.wrapping_offset(k as isize * from_step),
            );
        }
        true
    }

    /// [`each`] for entries in index order.
    ///
    /// # Safety
    /// As for [`each`].
    #[inline(always)]
    pub(super) unsafe fn each_in_order(
        &self,
        task: &Task<'_>,
        places: &[u32],
        mut visit: impl Visit,
    ) {
        // SAFETY: the caller's promise.
        let (to_place, from_entry) = unsafe { self.addresses(task) };
        let prefetches = self.prefetches(task);
        // If places are repeated, as in a sorted index, they are in a cache. (200k rows of 64 `f32`
        // into 20k by a sorted index: 2.7 ms instead of 3.1.)
        let ahead = !task.listed.repeats(Repeated::Some);
        let last = places.len().saturating_sub(1);
        for (k, &place) in places.iter().enumerate() {
            if ahead {
                let next = (k + prefetches.ahead).min(last);
                prefetches.in_order(to_place(places[next]), from_entry(next));
            }
            visit.visit(place as usize, to_place(place), from_entry(k));
        }
    }

    /// [`each`] for numbered entries.
    ///
    /// # Safety
    /// As for [`each`].
    #[inline(always)]
    pub(super) unsafe fn each_numbered(
        &self,
        task: &Task<'_>,
        (items, after): (&[Item<u32>], &[Item<u32>]),
        mut visit: impl Visit,
    ) {
        // SAFETY: the caller's promise.
        let (to_place, from_entry) = unsafe { self.addresses(task) };
        let prefetches = self.prefetches(task);
        for (k, item) in items.iter().enumerate() {
            let next = k + prefetches.ahead;
            let next = items.get(next).or_else(|| after.get(next - items.len()));
            if let Some(next) = next {
                let (place, entry) = (to_place(next.place), from_entry(next.beside as usize));
                if prefetches.short {
                    // Updates with gaps miss every cache, so they are prefetched into the second level,
                    // as in `long`. (2M rows of 8 `f32` into 10k, processor time of 64 threads: 20 ms;
                    // 22 ms into the first level, 28 ms only 16 entries ahead, 37 ms 128 ahead.)
                    prefetch(place, 1);
                    prefetch_far(entry, 1);
                } else {
                    prefetches.long(place, entry);
                }
            }
            let (place, entry) = (item.place, item.beside as usize);
            visit.visit(place as usize, to_place(place), from_entry(entry));
        }
    }

    /// Returns whether [`Direct::each_near`] is the loop for a task in index order.
    pub(super) fn is_near(&self, task: &Task<'_>) -> bool {
        self.prefetches(task).short
    }

    /// Returns how [`each`] prefetches the rows of a task.
    fn prefetches(&self, task: &Task<'_>) -> Prefetches {
        let in_order = matches!(task.listed, Listed::InOrder(_));
        let with_gaps = !in_order;
        let span = |n: usize| match task.run.strides[n] {
            stride @ 0..=LINE_STEP => (stride as usize * task.run.len).min(SHORT_ROW.get()),
            _ => 1,
        };
        let (to_span, from_span) = (span(0), if with_gaps { span(2) } else { 0 });
        let short = to_span.max(from_span) <= LINE;
        let rows = rows_ahead(to_span);
        let ahead = if with_gaps { rows } else { AHEAD.min(rows) };
        Prefetches { ahead, short, to_span, from_span }
    }
}

/// Calls `$visit` with the place of each entry of a task, relative to the range, the address of the
/// place and the address of the update. The entries are not words.
///
/// It is a macro, so that each loop has a closure of its own. The compiler would not inline one that
/// several loops call. (500k rows of 8 `f32` into 50k: 1.2 ms instead of 1.5.)
///
/// # Safety
/// As for [`Direct::origins`], for all entries.
macro_rules! each {
    ($direct:expr, $task:expr, $visit:expr) => {
        match $task.listed {
            Listed::InOrder(places) if $direct.is_near($task) => {
                $direct.each_near($task, places, $visit)
            }
            Listed::InOrder(places) => $direct.each_in_order($task, places, $visit),
            Listed::Numbered(items, after) => $direct.each_numbered($task, (items, after), $visit),
            Listed::Words(_) | Listed::LongWords(_) => unreachable!("no words"),
        }
    };
}
pub(super) use each;

/// What is done with each entry of a task.
pub(super) trait Visit {
    /// Gets the place of the entry, relative to the range, the address of the place and that of the
    /// update.
    fn visit(&mut self, place: usize, to: *mut u8, from: *const u8);
}

impl<F: FnMut(usize, *mut u8, *const u8)> Visit for F {
    #[inline(always)]
    fn visit(&mut self, place: usize, to: *mut u8, from: *const u8) {
        self(place, to, from);
    }
}

/// How the rows of a task are prefetched.
struct Prefetches {
    /// The number of entries between the prefetch of a row and its use.
    ahead: usize,
    /// Whether places and updates take one cache line each.
    short: bool,
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
        prefetch_far(place, self.to_span);
        prefetch_far(update, self.from_span);
    }

    /// [`Prefetches::long`] for entries in index order. A place may have been written just before. A
    /// prefetch into the second level would move it there.
    #[inline(never)]
    fn in_order(&self, place: *const u8, update: *const u8) {
        prefetch(place, self.to_span);
        prefetch_far(update, self.from_span);
    }
}
