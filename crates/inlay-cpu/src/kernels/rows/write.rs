//! Loops that write the listed entries of a block, for rows of any length.

use std::marker::PhantomData;

use super::direct::{Direct, Listed, Task, Visit, each};
use super::notes::{Everything, Note};
use crate::arch::{self, Loop, Simd};
use crate::kernels::copy::move_run;
use crate::kernels::listing::{Repeated, Values};
use crate::kernels::reducer::{Reducer, blend, merge_or_alone, prefetch_far, rows_ahead};

/// The number of elements that are reduced at a time in contiguous rows of this length. In longer
/// rows twice as many are reduced at a time. The number is a constant, so that the compiler
/// vectorizes the loop. (500k rows of 8 `f32` into 50k: 0.9 ms instead of 1.9. With 8 at a time,
/// the compiler would not vectorize `amax` in longer rows.)
pub(super) const NEAR: usize = 8;

/// Contiguous rows whose length is a multiple of this many bytes are copied in chunks of this size.
const CHUNK: usize = 32;

/// Assigns each listed entry to its place. The last entry of a place wins.
///
/// # Safety
/// The task and the listed places and entries lie inside of the call's views, and no other thread
/// has these places and elements.
pub(super) unsafe fn assign<W: Copy>(direct: &Direct<'_>, task: &Task<'_>, _words: &mut [u32]) {
    let run = task.run;
    let size = size_of::<W>() as isize;
    let bytes = run.len * size_of::<W>();
    // SAFETY: the caller's promise.
    unsafe {
        if run.strides[0] == size && run.strides[2] == size && bytes.is_multiple_of(CHUNK) {
            let chunk = |to: *mut u8, from: *const u8| {
                let chunk = from.cast::<[u8; CHUNK]>().read_unaligned();
                to.cast::<[u8; CHUNK]>().write_unaligned(chunk);
            };
            if bytes == CHUNK {
                return each!(direct, task, |_, to, from| chunk(to, from));
            }
            return each!(direct, task, |_, to: *mut u8, from: *const u8| {
                (0..bytes).step_by(CHUNK).for_each(|k| chunk(to.add(k), from.add(k)));
            });
        }
        each!(direct, task, |_, to, from| {
            move_run::<W>(to, run.strides[0], from, run.strides[2], run.len);
        });
    }
}

/// Reduces each listed entry into its place.
///
/// # Safety
/// As for [`assign`]; `words` are the notes of the range.
pub(super) unsafe fn join<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    words: &mut [u32],
) {
    let run = task.run;
    let size = size_of::<T>() as isize;
    // SAFETY: the caller's promise.
    unsafe {
        if N::are_complete(words, task.own.len()) {
            return join::<T, R, Everything>(direct, task, words);
        }
        let value = |from: *const u8| from.cast::<T>().read_unaligned();
        let merge = |to: *mut u8, from: *const u8| {
            to.cast::<T>().write_unaligned(R::merge(value(to), value(from)));
        };
        if run.len == 1 {
            return each!(direct, task, |place, to, from| {
                let takes_part = N::takes_part(words, place);
                if N::JOINS {
                    return merge(to, from);
                }
                let joined = merge_or_alone::<T, R>(takes_part, value(to), value(from));
                to.cast::<T>().write_unaligned(joined);
            });
        }
        let without_gaps = run.strides[0] == size && run.strides[2] == size;
        if without_gaps && (run.len == NEAR || run.len.is_multiple_of(2 * NEAR)) {
            let work = JoinRows::<T, R, N> { direct, task, words, types: PhantomData };
            return arch::dispatch(work);
        }
        each!(direct, task, |place, to: *mut u8, from: *const u8| {
            let takes_part = N::takes_part(words, place);
            for k in 0..run.len as isize {
                let (to, from) = (to.offset(k * run.strides[0]), from.offset(k * run.strides[2]));
                match takes_part {
                    true => merge(to, from),
                    false => to.cast::<T>().write_unaligned(R::alone(value(from))),
                }
            }
        });
    }
}

/// [`join_rows`] as a loop that is compiled per level. Some vector instructions for 64-bit integers
/// exist only above the portable level.
struct JoinRows<'a, T, R, N> {
    direct: &'a Direct<'a>,
    task: &'a Task<'a>,
    words: &'a mut [u32],
    types: PhantomData<(T, R, N)>,
}

impl<T: Copy, R: Reducer<T>, N: Note> Loop for JoinRows<'_, T, R, N> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self, _simd: S) {
        // SAFETY: the caller's promise.
        unsafe { join_rows::<T, R, N>(self.direct, self.task, self.words) }
    }
}

/// Reduces each listed entry into its place. Rows are contiguous and have [`NEAR`] elements, or a
/// multiple of twice as many.
///
/// # Safety
/// As for [`join`].
#[inline(always)]
unsafe fn join_rows<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    words: &mut [u32],
) {
    let len = task.run.len;
    // SAFETY: the caller's promise.
    unsafe {
        let (piece, shared) = (len < direct.row_len(), task.own.len() < direct.places());
        let runs = len == NEAR || piece || shared && len <= SHORT;
        let often = if len == NEAR { Repeated::Most } else { Repeated::Some };
        let by_run = runs && task.listed.repeats(often);
        match task.listed {
            Listed::InOrder(places) if by_run && len == NEAR => {
                let entries = Entries { count: places.len(), of: |k| (places[k], k) };
                return join_same::<T, R, N>(direct, task, entries, words);
            }
            Listed::InOrder(places) if by_run => {
                return join_runs::<T, R, N>(direct, task, places, words);
            }
            Listed::Numbered(items, _) if by_run && len == NEAR => {
                let of = |k: usize| (items[k].place, items[k].beside as usize);
                let entries = Entries { count: items.len(), of };
                return join_same::<T, R, N>(direct, task, entries, words);
            }
            _ => {}
        }
        let types = PhantomData::<(T, R, N)>;
        if len == NEAR {
            return each!(direct, task, JoinRow::<_, NEAR> { words, len, types });
        }
        each!(direct, task, JoinRow::<_, { 2 * NEAR }> { words, len, types });
    }
}

/// Reduces the row of an entry into its place, `K` elements at a time. It is no closure, because the
/// compiler may call a long closure instead of inlining it, and compiles it for the portable level
/// then. (Maxima of 200k rows of 64 `f32` into 20k: 3.0 ms instead of 3.7.)
///
/// The caller of a loop guarantees what [`join_near`] relies on, for all entries.
struct JoinRow<'w, Types, const K: usize> {
    words: &'w mut [u32],
    len: usize,
    types: PhantomData<Types>,
}

impl<T: Copy, R: Reducer<T>, N: Note, const K: usize> Visit for JoinRow<'_, (T, R, N), K> {
    #[inline(always)]
    fn visit(&mut self, place: usize, to: *mut u8, from: *const u8) {
        // SAFETY: the promise of the caller of the loop.
        unsafe {
            let takes_part = N::takes_part(self.words, place);
            match K {
                NEAR => join_nearest::<T, R, N>(to, from, takes_part),
                _ => join_near::<T, R, K>(to, from, self.len, takes_part),
            }
        }
    }
}

/// Reduces contiguous rows of [`NEAR`] elements into their places, and reads and checks their index
/// values at the same time. Returns false at the first value that is out of range.
///
/// # Safety
/// As for [`join`]; the range is the whole axis, and `values` are the entries of the task.
pub(super) unsafe fn join_scanned<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    values: Values<'_>,
    words: &mut [u32],
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if N::are_complete(words, task.own.len()) {
            return join_scanned::<T, R, Everything>(direct, task, values, words);
        }
        arch::dispatch(JoinScanned::<T, R, N> { direct, task, values, words, types: PhantomData })
    }
}

/// [`join_scanned`] as a loop that is compiled per level.
struct JoinScanned<'a, T, R, N> {
    direct: &'a Direct<'a>,
    task: &'a Task<'a>,
    values: Values<'a>,
    words: &'a mut [u32],
    types: PhantomData<(T, R, N)>,
}

impl<T: Copy, R: Reducer<T>, N: Note> Loop for JoinScanned<'_, T, R, N> {
    type Output = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self, _simd: S) -> bool {
        let JoinScanned { direct, task, values, words, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            let types = PhantomData::<(T, R, N)>;
            direct.each_scanned(task, values, JoinRow::<_, NEAR> { words, len: NEAR, types })
        }
    }
}

/// Listed entries: their number, and a function that returns the place of an entry and the number of its
/// update.
struct Entries<F> {
    count: usize,
    of: F,
}

/// [`join_rows`] of [`NEAR`] elements. While entries name the same place, its row stays in registers. It
/// is one loop without closures: if the row were in memory, each entry would wait for the store of the one
/// before.
///
/// # Safety
/// As for [`join`]. The entries are those of the task.
#[inline(always)]
unsafe fn join_same<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    entries: Entries<impl Fn(usize) -> (u32, usize)>,
    words: &mut [u32],
) {
    let ([to_step, _, from_step], Entries { count, of }) = (direct.steps, entries);
    // SAFETY: the caller's promise. Prefetches may be of any address.
    unsafe {
        let (to, from) = direct.origins(task);
        let ahead = rows_ahead(NEAR * size_of::<T>());
        let mut k = 0;
        while k < count {
            let (place, entry) = of(k);
            let to = to.offset(place as isize * to_step).cast::<[T; NEAR]>();
            let row = |entry: usize| from.offset(entry as isize * from_step).cast::<[T; NEAR]>();
            let mut joined = row(entry).read_unaligned();
            let mask = N::takes_part(words, place as usize);
            let mask = arch::hidden_word(u64::from(mask).wrapping_neg());
            let so_far = to.read_unaligned();
            for lane in 0..NEAR {
                let (merged, alone) =
                    (R::merge(so_far[lane], joined[lane]), R::alone(joined[lane]));
                joined[lane] = if N::JOINS { merged } else { blend(mask, merged, alone) };
            }
            loop {
                k += 1;
                if k == count {
                    break;
                }
                let (next, entry) = of(k);
                prefetch_far(row(of((k + ahead).min(count - 1)).1).cast(), 1);
                if next != place {
                    break;
                }
                if N::COUNTS {
                    N::takes_part(words, place as usize);
                }
                let row = row(entry).read_unaligned();
                for lane in 0..NEAR {
                    joined[lane] = R::merge(joined[lane], row[lane]);
                }
            }
            to.write_unaligned(joined);
        }
    }
}

/// The number of rows that are added to a place before it is stored.
const ROWS: usize = 8;

/// Rows of up to this many elements, and pieces of longer rows, are joined by [`join_runs`]. In a
/// longer row, a place was stored long before it is loaded again. (100k rows of 512 `f32` by a sorted
/// index on one thread: 8 ms, by `join_runs` 12.6 ms.) One thread that writes all places does not use
/// it. (200k rows of 64 `f32` into 20k by a sorted index: 2.1 ms, by `join_runs` 2.7 ms.)
const SHORT: usize = 64;

/// [`join_rows`] of entries in index order, many of which name the place of the one before, as in a
/// sorted index. A load of what was just stored takes longer than the reduction, so a place is loaded
/// and stored once for several rows. (500k rows of 64 `f32` into 1M by a sorted index, on two threads:
/// 15 ms instead of 24.)
///
/// # Safety
/// As for [`join`]. `places` are those of the task.
#[inline(always)]
unsafe fn join_runs<T: Copy, R: Reducer<T>, N: Note>(
    direct: &Direct<'_>,
    task: &Task<'_>,
    places: &[u32],
    words: &mut [u32],
) {
    const K: usize = 2 * NEAR;
    let (len, [to_step, _, from_step]) = (task.run.len, direct.steps);
    // SAFETY: the caller's promise. Prefetches may be of any address.
    unsafe {
        let (to, from) = direct.origins(task);
        let ahead = rows_ahead(len * size_of::<T>());
        let mut first = 0;
        for run in places.chunk_by(|a, b| a == b) {
            let place = run[0];
            let to = to.offset(place as isize * to_step);
            for start in (0..run.len()).step_by(ROWS) {
                let rows = start..(start + ROWS).min(run.len());
                let row = |k: usize| from.wrapping_offset((first + k) as isize * from_step);
                rows.clone().for_each(|k| {
                    prefetch_far(row(k + ahead), len * size_of::<T>());
                });
                let mut takes_part = true;
                if start == 0 {
                    takes_part = N::takes_part(words, place as usize);
                }
                if N::COUNTS {
                    // The first value of the run was counted just before.
                    let more = rows.len() - usize::from(start == 0);
                    (0..more).for_each(|_| _ = N::takes_part(words, place as usize));
                }
                for lane in (0..len).step_by(K) {
                    let at = |row: *const u8| row.cast::<T>().add(lane).cast::<[T; K]>();
                    let (mut joined, skip) = match takes_part {
                        true => (at(to).read_unaligned(), 0),
                        false => (at(row(start)).read_unaligned().map(R::alone), 1),
                    };
                    for k in rows.clone().skip(skip) {
                        let values = at(row(k)).read_unaligned();
                        for (joined, value) in joined.iter_mut().zip(values) {
                            *joined = R::merge(*joined, value);
                        }
                    }
                    at(to).cast_mut().write_unaligned(joined);
                }
            }
            first += run.len();
        }
    }
}

/// Reduces a contiguous row of [`NEAR`] elements into its place. As for single values, the choice between
/// the merged row and the row alone has no branch.
///
/// # Safety
/// As for [`join_near`].
#[inline(always)]
unsafe fn join_nearest<T: Copy, R: Reducer<T>, N: Note>(
    to: *mut u8,
    from: *const u8,
    takes_part: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if N::JOINS {
            return join_near::<T, R, NEAR>(to, from, NEAR, true);
        }
        let mask = arch::hidden_word(u64::from(takes_part).wrapping_neg());
        let (to, row) = (to.cast::<[T; NEAR]>(), from.cast::<[T; NEAR]>().read_unaligned());
        let mut joined = to.read_unaligned();
        for lane in 0..NEAR {
            joined[lane] = blend(mask, R::merge(joined[lane], row[lane]), R::alone(row[lane]));
        }
        to.write_unaligned(joined);
    }
}

/// Reduces a contiguous row into its place, `K` elements at a time.
///
/// # Safety
/// `len` elements, a multiple of `K`, can be read and written at `first`, and read at `from`.
#[inline(always)]
unsafe fn join_near<T: Copy, R: Reducer<T>, const K: usize>(
    first: *mut u8,
    from: *const u8,
    len: usize,
    takes_part: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let to = |k: usize| first.cast::<T>().add(k).cast::<[T; K]>();
        let row = |k: usize| from.cast::<T>().add(k).cast::<[T; K]>().read_unaligned();
        // There are two loops: with a branch inside of one loop, the compiler keeps the result in
        // memory. (Means of rows of 64 `f32`: 23 ms instead of 43.)
        if !takes_part {
            for k in (0..len).step_by(K) {
                let mut row = row(k);
                for value in &mut row {
                    *value = R::alone(*value);
                }
                to(k).write_unaligned(row);
            }
            return;
        }
        // If the compiler sees that a maximum is stored to where the old value was loaded, it makes
        // a masked store of it, which is slow. (1M rows of 64 `f32` into 100k places, skewed: 24 ms
        // instead of 14.)
        let out = arch::hidden(first);
        for k in (0..len).step_by(K) {
            let (mut joined, row) = (to(k).read_unaligned(), row(k));
            for lane in 0..K {
                joined[lane] = R::merge(joined[lane], row[lane]);
            }
            out.cast::<T>().add(k).cast::<[T; K]>().write_unaligned(joined);
        }
    }
}
