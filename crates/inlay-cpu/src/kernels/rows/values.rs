//! Loops for contiguous rows of one value.

use std::hint::{black_box, select_unpredictable};
use std::mem::MaybeUninit;

use super::direct::{AHEAD, Direct, Task};
use super::write::Note;
use crate::kernels::listing::List;
use crate::kernels::reducer::{Reducer, prefetch};

/// Assigns each entry of a block to its place. The last entry of a place wins. Entries whose places
/// other threads own are written to a dummy variable, which is faster than a list. (10M values into
/// 1M: 0.8 of the time.) Returns false if an index value is negative or out of range.
///
/// [`Values::get`] loads each index value once, so the value that is compared with the range is the
/// value that is used, even if another thread changes the index.
///
/// [`Values::get`]: crate::kernels::listing::Values::get
///
/// # Safety
/// The task lies inside of the call's views, whose rows are contiguous single values, and no other
/// thread has its places.
pub(super) unsafe fn assign_values<W: Copy>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    _list: &mut List,
    _words: &mut [u32],
) -> bool {
    // SAFETY: the caller's promise; a place outside of the range is not written.
    unsafe {
        let (to, from) = direct.origins(task);
        let (to, from) = (to.cast::<W>(), from.cast::<W>());
        let (first, count) = (task.own.start as u64, task.own.len() as u64);
        let mut aside = MaybeUninit::<W>::uninit();
        // If the compiler saw that nobody reads the dummy variable, it would skip the write by a
        // branch.
        let aside = black_box(aside.as_mut_ptr());
        let mut largest = 0;
        for k in 0..task.values.len() {
            let value = task.values.get(k) as u64;
            largest = value.max(largest);
            let local = value.wrapping_sub(first);
            let place = select_unpredictable(local < count, to.wrapping_add(local as usize), aside);
            place.write_unaligned(from.add(k).read_unaligned());
        }
        largest < direct.places() as u64
    }
}

/// Reduces all entries of a block into their places, if this thread owns all places and no index
/// value is negative or out of range. Otherwise it writes nothing and returns false.
///
/// # Safety
/// As for [`assign_values`]; `words` are the notes of the range.
pub(super) unsafe fn join_all<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    list: &mut List,
    words: &mut [u32],
) -> bool {
    if task.own.len() < direct.places() {
        return false;
    }
    let Some(places) = list.all_places(task.values, direct.places()) else { return false };
    // SAFETY: the caller's promise; `all_places` has checked the places, which are a private copy.
    unsafe {
        let (to, from) = direct.origins(task);
        let last = places.len().saturating_sub(1);
        for (k, &place) in places.iter().enumerate() {
            // With notes, prefetching takes more time than it saves.
            if N::NOTHING {
                let next = places[(k + AHEAD).min(last)] as usize;
                prefetch(to.cast::<T>().wrapping_add(next).cast(), 1);
            }
            let value = from.cast::<T>().add(k).read_unaligned();
            join_one::<T, R, N>(to.cast(), place as usize, value, words);
        }
    }
    true
}

/// Reduces updates that are listed beside their places.
///
/// # Safety
/// As for [`join_all`]; the list was filled with words, and every word is a `T`.
pub(super) unsafe fn join_words<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    list: &List,
    words: &mut [u32],
) {
    assert_eq!(size_of::<T>(), size_of::<u32>(), "an update is a 32-bit word");
    // SAFETY: the caller's promise; `List` keeps places inside of the range.
    unsafe {
        let (to, _) = direct.origins(task);
        for (&place, value) in list.places().iter().zip(list.beside()) {
            let value = std::ptr::from_ref(value).cast::<T>().read();
            join_one::<T, R, N>(to.cast(), place as usize, value, words);
        }
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
        let joined = R::merge(to.read_unaligned(), value);
        to.write_unaligned(select_unpredictable(takes_part, joined, R::alone(value)));
    }
}
