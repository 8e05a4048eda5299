//! Rows written directly, in index order.
//!
//! Threads own ranges of places, or rows' elements where there are enough that lie apart. Each goes
//! through the index block by block, lists what falls into its range, and writes that.

use std::hint::{black_box, select_unpredictable};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{Combine, Reduce, Result};
use smallvec::SmallVec;

use super::{Call, DIRECT_ROW};
use crate::kernels::copy::{copy, move_run};
use crate::kernels::listing::{BLOCK, Entries, List, Values, shares};
use crate::kernels::positions::Shared;
use crate::kernels::reducer::{Reducer, dispatch_reduce, prefetch};
use crate::memory::Space;
use crate::number::dispatch_width;
use crate::threads;
use crate::walk::{Run, Walk};

/// Entries that a place is asked for ahead of its use, which its address does not follow from. It
/// halves the time of 10M values into 30M, which no cache holds, and costs nothing where one does.
const AHEAD: usize = 16;

/// A scatter and how its rows are cut.
pub(super) struct Direct<'a> {
    call: Call<'a>,
    rows: Walk<3>,
    steps: [isize; 3],
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
    /// A number a place: how many values it is the sum of.
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

    /// How many words `places` need.
    fn words(self, places: usize) -> usize {
        match self {
            Notes::Nothing => 0,
            Notes::Named => places.div_ceil(u32::BITS as usize),
            Notes::Counted { .. } => places,
        }
    }
}

/// A part of the index, and the run of elements to be written by it.
struct Task<'t> {
    run: Run<3>,
    own: &'t Range<usize>,
    /// The number of the block's first entry.
    first: usize,
    values: Values<'t>,
}

type Write = unsafe fn(&Direct<'_>, &Task<'_>, &List, &mut [u32]);

/// How a call's entries are written.
#[derive(Clone, Copy)]
struct Writers {
    /// Writes a block without a list; or tells that it needs one, which undoes nothing.
    quick: Option<unsafe fn(&Direct<'_>, &Task<'_>) -> bool>,
    /// Writes what is listed of a block.
    block: Write,
    /// The same for slabs after the first, where that has noted what is so for all of them.
    again: Option<Write>,
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

    /// Whether a thread goes through the index no more than once.
    pub(super) fn reads_index_once(&self) -> bool {
        self.rows.len() == self.row_len
    }

    fn places(&self) -> usize {
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
            ranges.iter().map(|range| notes.words(range.len())).collect();
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
            if again.is_none() {
                space.fill(match notes {
                    Notes::Counted { include_self: true } => 1,
                    _ => 0,
                });
            }
            let elements = slab * self.row_len..(slab + 1) * self.row_len;
            self.rows.runs(elements, |run| {
                for block in entries.blocks() {
                    let values = entries.values(block.clone(), &mut space_of_values);
                    let task = Task { run, own, first: block.start, values };
                    // SAFETY: the run lies inside of the rows; listed places lie inside of the
                    // range and listed entries inside of the block, as `List` promises; threads
                    // have different elements, or different places.
                    unsafe {
                        if writers.quick.is_some_and(|quick| quick(self, &task)) {
                            continue;
                        }
                        // The list of an index that is one block serves all slabs.
                        if !single || slab == slabs.start {
                            let (_, updates) = self.origins(&task);
                            inside &=
                                list.fill(values, self.places(), own, (updates, self.steps[2]));
                        }
                        again.unwrap_or(writers.block)(self, &task, &list, space);
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

    fn writers(&self) -> Writers {
        let (dst, updates) = (self.call.dst, self.call.updates);
        let size = dst.dtype().size();
        let listed = |block: Write| Writers { quick: None, block, again: None, end: None };
        match self.call.combine {
            Combine::Assign => dispatch_width!(size, W => {
                let step = size as isize;
                let values = self.row_len == 1 && self.steps[0] == step && self.steps[2] == step;
                let quick = values.then_some(assign_values::<W> as _);
                Writers { quick, ..listed(assign::<W>) }
            }),
            Combine::Reduce { reduce, .. } => {
                let notes = Notes::of(self.call.combine);
                assert_eq!(dst.dtype(), updates.dtype(), "numbers of one dtype");
                dispatch_reduce!(reduce, dst.dtype(), (T, R) => {
                    if !<R as Reducer<T>>::IN_PLACE {
                        unreachable!("only what is reduced in place is written directly")
                    } else if <R as Reducer<T>>::COUNTS {
                        // What a place holds takes part from the start: then it is enough that one
                        // slab counts for all.
                        let counted = notes == Notes::Counted { include_self: true };
                        let again = counted.then_some(join::<T, R, Everything> as Write);
                        let end = Some(divide::<T, R> as _);
                        Writers { again, end, ..listed(join::<T, R, Counted>) }
                    } else if notes == Notes::Named {
                        listed(join::<T, R, Named>)
                    } else {
                        listed(join::<T, R, Everything>)
                    }
                })
            }
        }
    }
}

/// What a place had before: tells whether it takes part, and notes that it does from now on.
trait Note {
    /// # Safety
    /// The words are those of a range that has the place.
    unsafe fn takes_part(words: &mut [u32], place: usize) -> bool;
}

struct Everything;
struct Named;
struct Counted;

impl Note for Everything {
    #[inline(always)]
    unsafe fn takes_part(_words: &mut [u32], _place: usize) -> bool {
        true
    }
}

impl Note for Named {
    #[inline(always)]
    unsafe fn takes_part(words: &mut [u32], place: usize) -> bool {
        // SAFETY: the caller's promise.
        let word = unsafe { words.get_unchecked_mut(place / 32) };
        let bit = 1 << (place % 32);
        let was = *word & bit != 0;
        *word |= bit;
        was
    }
}

impl Note for Counted {
    #[inline(always)]
    unsafe fn takes_part(words: &mut [u32], place: usize) -> bool {
        // SAFETY: the caller's promise.
        let count = unsafe { words.get_unchecked_mut(place) };
        *count += 1;
        *count > 1
    }
}

impl Direct<'_> {
    /// Where the range's first place and the block's first entry lie.
    ///
    /// # Safety
    /// They are inside of their axes, and the run inside of the rows.
    unsafe fn origins(&self, task: &Task<'_>) -> (*mut u8, *const u8) {
        let to = task.run.offsets[0] + task.own.start as isize * self.steps[0];
        let from = task.run.offsets[2] + task.first as isize * self.steps[2];
        // SAFETY: the caller's promise.
        unsafe { (self.call.dst.origin().offset(to), self.call.updates.origin().offset(from)) }
    }

    /// Calls `visit` with each listed place, where it and its entry lie.
    ///
    /// # Safety
    /// As for [`Direct::origins`], with what is listed.
    #[inline(always)]
    unsafe fn each(
        &self,
        task: &Task<'_>,
        list: &List,
        mut visit: impl FnMut(usize, *mut u8, *const u8),
    ) {
        let [to_step, _, from_step] = self.steps;
        let (places, entries) = (list.places(), list.entries());
        // SAFETY: the caller's promise.
        let (to, from) = unsafe { self.origins(task) };
        let to_place = |place: u32| to.wrapping_offset(place as isize * to_step);
        // Of rows that one thread reads in the order of memory, the CPU asks for the updates itself.
        let bytes = self.row_len * self.call.dst.dtype().size();
        for (k, (&place, &entry)) in places.iter().zip(entries).enumerate() {
            if let Some((&place, &entry)) = places.get(k + AHEAD).zip(entries.get(k + AHEAD)) {
                prefetch(to_place(place), bytes);
                if from_step.unsigned_abs() > 8 && bytes <= DIRECT_ROW {
                    prefetch(from.wrapping_offset(entry as isize * from_step), 1);
                }
            }
            visit(
                place as usize,
                to_place(place),
                from.wrapping_offset(entry as isize * from_step),
            );
        }
    }
}

/// The last entry of a place wins.
///
/// # Safety
/// The task lies inside of the call's views, and no other thread has its elements and places.
unsafe fn assign<W: Copy>(direct: &Direct<'_>, task: &Task<'_>, list: &List, _words: &mut [u32]) {
    let run = task.run;
    // SAFETY: the caller's promise.
    unsafe {
        direct.each(task, list, |_, to, from| {
            move_run::<W>(to, run.strides[0], from, run.strides[2], run.len);
        });
    }
}

/// [`assign`] for rows of one element that lie side by side. What other ranges own is written
/// aside, which is sooner done than listed: 10M values into 1M took 0.8 of the time. It gives up
/// when a value is negative or out of range; then the whole block is written again.
///
/// # Safety
/// As for [`assign`].
unsafe fn assign_values<W: Copy>(direct: &Direct<'_>, task: &Task<'_>) -> bool {
    let (first, count) = (task.own.start as u64, task.own.len() as u64);
    let mut aside = MaybeUninit::<W>::uninit();
    // Known to be read by nobody, it would not be written, which takes a branch.
    let aside = black_box(aside.as_mut_ptr());
    let mut largest = 0;
    // SAFETY: the caller's promise; a position that is not in the range is not written to.
    unsafe {
        let (to, from) = direct.origins(task);
        let (to, from) = (to.cast::<W>(), from.cast::<W>());
        for k in 0..task.values.len() {
            let value = task.values.get(k) as u64;
            largest = value.max(largest);
            let local = value.wrapping_sub(first);
            let place = select_unpredictable(local < count, to.wrapping_add(local as usize), aside);
            place.write_unaligned(from.add(k).read_unaligned());
        }
    }
    largest < direct.places() as u64
}

/// Joins each entry to its place.
///
/// # Safety
/// As for [`assign`]; the words are those of the range.
unsafe fn join<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    list: &List,
    words: &mut [u32],
) {
    let run = task.run;
    let size = size_of::<T>() as isize;
    // SAFETY: the caller's promise.
    unsafe {
        let one = |takes_part: bool, to: *mut u8, from: *const u8| {
            let value = from.cast::<T>().read_unaligned();
            let to = to.cast::<T>();
            let joined = R::merge(to.read_unaligned(), value);
            to.write_unaligned(select_unpredictable(takes_part, joined, R::alone(value)));
        };
        if run.len == 1 {
            return direct.each(task, list, |place, to, from| {
                one(N::takes_part(words, place), to, from);
            });
        }
        let without_gaps = run.strides[0] == size && run.strides[2] == size;
        direct.each(task, list, |place, to, from| {
            if !N::takes_part(words, place) {
                for k in 0..run.len as isize {
                    one(false, to.offset(k * run.strides[0]), from.offset(k * run.strides[2]));
                }
            } else if without_gaps {
                for k in 0..run.len as isize {
                    one(true, to.offset(k * size), from.offset(k * size));
                }
            } else {
                for k in 0..run.len as isize {
                    one(true, to.offset(k * run.strides[0]), from.offset(k * run.strides[2]));
                }
            }
        });
    }
}

/// Divides the sums of a range by their counts.
///
/// # Safety
/// As for [`join`].
unsafe fn divide<T: Copy, R: Reducer<T>>(direct: &Direct<'_>, task: &Task<'_>, words: &mut [u32]) {
    let include_self = matches!(direct.call.combine, Combine::Reduce { include_self: true, .. });
    let alone = u32::from(include_self);
    let run = task.run;
    let size = size_of::<T>() as isize;
    // SAFETY: the caller's promise.
    unsafe {
        let (to, _) = direct.origins(task);
        let mean = |sum: T, count: u32| R::finish(R::widen(sum), count as usize);
        let one = |to: *mut T, count: u32| to.write_unaligned(mean(to.read_unaligned(), count));
        // Loops of their own where elements follow each other, which become vectors: without, the
        // means of 64 x 5000 rows of 16 floats took 1.3 times as long.
        if run.len == 1 && direct.steps[0] == size {
            for (place, &count) in words.iter().enumerate() {
                let to = to.cast::<T>().add(place);
                let sum = to.read_unaligned();
                let kept = count <= alone;
                to.write_unaligned(select_unpredictable(kept, sum, mean(sum, count.max(1))));
            }
            return;
        }
        for (place, &count) in words.iter().enumerate() {
            if count <= alone {
                continue;
            }
            let to = to.offset(place as isize * direct.steps[0]);
            if run.strides[0] == size {
                (0..run.len).for_each(|k| one(to.cast::<T>().add(k), count));
            } else {
                (0..run.len as isize)
                    .for_each(|k| one(to.offset(k * run.strides[0]).cast(), count));
            }
        }
    }
}
