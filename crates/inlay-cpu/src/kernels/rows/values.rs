//! Loops for contiguous rows of one value.

use std::hint::{black_box, select_unpredictable};
use std::mem::MaybeUninit;

use super::direct::{Direct, Listed, Task};
use super::notes::{Everything, Note};
use crate::kernels::listing::{Repeated, Values};
use crate::kernels::partition::Item;
use crate::kernels::positions::{from_front, is_inside};
use crate::kernels::reducer::{Reducer, merge_or_alone, prefetch};
use crate::memory::Plain;

/// Assigns each entry of a block to its place. The last entry of a place wins. Entries whose places
/// other threads own are written to a dummy variable, which is faster than a branch. Returns the
/// lowest and the highest place that was named, or `None` if an index value is out of range.
///
/// [`Values::get`] loads each index value once, so the value that is compared with the range is the
/// value that is used, even if another thread changes the index.
///
/// # Safety
/// The task lies inside of the call's views, whose rows are contiguous single values, and no other
/// thread has its places. `values` are its entries.
pub(super) unsafe fn assign_scanned<W: Copy>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    values: Values<'_>,
) -> Option<[usize; 2]> {
    let places = direct.places();
    // SAFETY: the caller's promise; a place outside of the range is not written.
    unsafe {
        let (to, from) = direct.origins(task);
        let (to, from) = (to.cast::<W>(), from.cast::<W>());
        let (first, count) = (task.own.start as u64, task.own.len() as u64);
        let mut aside = MaybeUninit::<W>::uninit();
        // If the compiler saw that nobody reads the dummy variable, it would skip the write by a
        // branch.
        let aside = black_box(aside.as_mut_ptr());
        let (mut lowest, mut highest) = (u64::MAX, 0);
        let mut put = |k: usize| {
            let value = values.get(k) as u64;
            highest = value.max(highest);
            let local = value.wrapping_sub(first);
            let place = select_unpredictable(local < count, to.wrapping_add(local as usize), aside);
            place.write_unaligned(from.add(k).read_unaligned());
            value
        };
        // The lowest place of a whole axis is not needed.
        if count == places as u64 {
            lowest = 0;
            (0..values.len()).for_each(|k| _ = put(k));
        } else {
            (0..values.len()).for_each(|k| lowest = put(k).min(lowest));
        }
        if highest < places as u64 {
            return Some([lowest as usize, highest as usize]);
        }
        // A value counts from the end, or is out of range. The block is written again.
        (lowest, highest) = (u64::MAX, 0);
        for k in 0..values.len() {
            let at = from_front(values.get(k), places);
            if !is_inside(at, places) {
                return None;
            }
            let at = at as u64;
            (lowest, highest) = (at.min(lowest), at.max(highest));
            let local = at.wrapping_sub(first);
            if local < count {
                to.add(local as usize).write_unaligned(from.add(k).read_unaligned());
            }
        }
        Some([lowest as usize, highest as usize])
    }
}

/// Assigns each entry of a task to its place. The last entry of a place wins.
///
/// # Safety
/// As for [`assign_scanned`].
pub(super) unsafe fn assign_values<W: Copy>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    _words: &mut [u32],
) {
    // SAFETY: the caller's promise; places lie inside of the range.
    unsafe {
        let (to, from) = direct.origins(task);
        let (to, from) = (to.cast::<W>(), from.cast::<W>());
        let put = |place: usize, value: W| to.add(place).write_unaligned(value);
        match task.listed {
            Listed::InOrder(places) => {
                each_in_order(to, from, places, direct.ahead(task.own, false), put);
            }
            Listed::Numbered(items, _) => each_numbered(from, items, put),
            Listed::Words(items) => each_word(to, items, None, put),
            Listed::LongWords(items) => each_word(to, items, None, put),
        }
    }
}

/// Reduces each entry of a task into its place.
///
/// # Safety
/// As for [`assign_scanned`]; `words` are the notes of the range.
pub(super) unsafe fn join_values<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    words: &mut [u32],
) {
    // SAFETY: the caller's promise; places lie inside of the range.
    unsafe {
        if N::are_complete(words, task.own.len()) {
            return join_values::<T, R, Everything>(direct, task, words);
        }
        let (to, from) = direct.origins(task);
        let (to, from) = (to.cast::<T>(), from.cast::<T>());
        let listed = matches!(task.listed, Listed::Words(_) | Listed::LongWords(_));
        let ahead = direct.ahead(task.own, listed || N::COUNTS);
        let far = ahead.is_some();
        // Each loop has a closure of its own. The compiler would not inline one that several loops
        // call.
        macro_rules! join {
            () => {
                |place: usize, value: T| join_one::<T, R, N>(to, place, value, words)
            };
        }
        match task.listed {
            Listed::InOrder(places) if task.listed.repeats(Repeated::Most) => {
                let values = (0..).map(|k| from.wrapping_add(k).read_unaligned());
                let places = places.iter().map(|&place| place as usize);
                join_repeats::<T, R, N>(to, words, places.zip(values));
            }
            // A place with many entries has a range of its own. Loops with and without prefetches are
            // compiled apart.
            Listed::Words(items) if task.own.len() == 1 => {
                join_repeats::<T, R, N>(to, words, words_of(items));
            }
            Listed::LongWords(items) if task.own.len() == 1 => {
                join_repeats::<T, R, N>(to, words, words_of(items));
            }
            Listed::InOrder(places) if far => each_in_order(to, from, places, ahead, join!()),
            Listed::InOrder(places) => each_in_order(to, from, places, None, join!()),
            Listed::Numbered(items, _) => each_numbered(from, items, join!()),
            Listed::Words(items) if far => each_word(to, items, ahead, join!()),
            Listed::Words(items) => each_word(to, items, None, join!()),
            Listed::LongWords(items) if far => each_word(to, items, ahead, join!()),
            Listed::LongWords(items) => each_word(to, items, None, join!()),
        }
    }
}

/// Reduces each entry into its place, and reads and checks its index value at the same time. That
/// overlaps the reads of the index with those of the places. (4M values into 400k: 5.7 ms instead of
/// 7.5.) Returns false at the first value that is out of range.
///
/// # Safety
/// As for [`join_values`]; the range is the whole axis, and `values` are the entries of the task.
pub(super) unsafe fn join_scanned_values<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    values: Values<'_>,
    words: &mut [u32],
) -> bool {
    // SAFETY: the caller's promise; `place` checks the places.
    unsafe {
        if N::are_complete(words, task.own.len()) {
            return join_scanned_values::<T, R, Everything>(direct, task, values, words);
        }
        let (to, from) = direct.origins(task);
        let (to, from, places) = (to.cast::<T>(), from.cast::<T>(), direct.places());
        let join = |k: usize, place: usize, words: &mut [u32]| {
            join_one::<T, R, N>(to, place, from.add(k).read_unaligned(), words);
        };
        if let Some(ahead) = direct.ahead(task.own, N::COUNTS) {
            for k in 0..values.len() {
                let Some(place) = values.place(k, places) else { return false };
                prefetch(to.wrapping_add(values.ahead(k + ahead) as usize).cast(), 1);
                join(k, place, words);
            }
            return true;
        }
        for k in 0..values.len() {
            let Some(place) = values.place(k, places) else { return false };
            join(k, place, words);
        }
        true
    }
}

/// Reduces a value into a place.
///
/// # Safety
/// `to` is the address of the first place of a range, `words` are its notes, and `place` is one of
/// its places.
#[inline(always)]
unsafe fn join_one<T: Copy, R: Reducer<T>, N: Note>(
    to: *mut T,
    place: usize,
    value: T,
    words: &mut [u32],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let takes_part = N::takes_part(words, place);
        let to = to.add(place);
        let so_far = to.read_unaligned();
        to.write_unaligned(match N::JOINS {
            true => R::merge(so_far, value),
            false => merge_or_alone::<T, R>(takes_part, so_far, value),
        });
    }
}

/// Reduces values into their places. While entries name the same place, as in a sorted index, its
/// value stays in a register: a load of what was just stored would take longer than the reduction.
/// (10M values into 10k by a sorted index: 13 ms instead of 37.)
///
/// # Safety
/// As for [`join_one`], for each place.
#[inline(always)]
unsafe fn join_repeats<T: Copy, R: Reducer<T>, N: Note>(
    to: *mut T,
    words: &mut [u32],
    entries: impl Iterator<Item = (usize, T)>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut last: Option<(usize, T)> = None;
        entries.for_each(|(place, value)| {
            if let Some((at, so_far)) = last {
                if at == place {
                    if N::COUNTS {
                        N::takes_part(words, place);
                    }
                    last = Some((at, R::merge(so_far, value)));
                    return;
                }
                to.add(at).write_unaligned(so_far);
            }
            let joined = match N::takes_part(words, place) {
                true => R::merge(to.add(place).read_unaligned(), value),
                false => R::alone(value),
            };
            last = Some((place, joined));
        });
        if let Some((at, done)) = last {
            to.add(at).write_unaligned(done);
        }
    }
}

/// Calls `visit` with each place and the value of its entry. `ahead` tells how many entries ahead places
/// are prefetched.
///
/// # Safety
/// There is a value for each place.
#[inline(always)]
unsafe fn each_in_order<T: Copy>(
    to: *mut T,
    from: *const T,
    places: &[u32],
    ahead: Option<usize>,
    mut visit: impl FnMut(usize, T),
) {
    let last = places.len().saturating_sub(1);
    for (k, &place) in places.iter().enumerate() {
        if let Some(ahead) = ahead {
            let next = places[(k + ahead).min(last)] as usize;
            prefetch(to.wrapping_add(next).cast(), 1);
        }
        // SAFETY: the caller's promise.
        visit(place as usize, unsafe { from.add(k).read_unaligned() });
    }
}

/// Calls `visit` with the place of each item and the value that it numbers.
///
/// # Safety
/// There is a value for each number.
#[inline(always)]
unsafe fn each_numbered<T: Copy>(
    from: *const T,
    items: &[Item<u32>],
    mut visit: impl FnMut(usize, T),
) {
    for item in items {
        // SAFETY: the caller's promise.
        let value = unsafe { from.add(item.beside as usize).read_unaligned() };
        visit(item.place as usize, value);
    }
}

/// Calls `visit` with the place of each item and the value beside it. `ahead` is as for
/// [`each_in_order`].
#[inline(always)]
fn each_word<T: Copy, P: Plain>(
    to: *mut T,
    items: &[Item<P>],
    ahead: Option<usize>,
    mut visit: impl FnMut(usize, T),
) {
    let last = items.len().saturating_sub(1);
    for (k, (place, value)) in words_of(items).enumerate() {
        if let Some(ahead) = ahead {
            let next = items[(k + ahead).min(last)].place as usize;
            prefetch(to.wrapping_add(next).cast(), 1);
        }
        visit(place, value);
    }
}

/// Returns the place of each item and the value beside it.
#[inline(always)]
fn words_of<T: Copy, P: Plain>(items: &[Item<P>]) -> impl Iterator<Item = (usize, T)> {
    assert!(size_of::<T>() <= size_of::<P>(), "a word holds an update");
    items.iter().map(|item| {
        let word = item.beside;
        // SAFETY: the word was made from the bytes of an update.
        (item.place as usize, unsafe { std::mem::transmute_copy(&word) })
    })
}
