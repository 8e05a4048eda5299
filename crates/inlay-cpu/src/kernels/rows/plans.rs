//! How threads share the entries of a scatter that is written directly.
//!
//! Results don't depend on the plan: the entries of a place are always combined in index order, and
//! no two threads write the same elements.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use inlay_core::{Combine, Layout, ResolvedSlice, Result};

use super::RowScatter;
use super::direct::{Beside, Direct, Listed, Notes, Task, Writers};
use super::grouped::LINE;
use crate::arch::caches::caches;
use crate::kernels::copy::copy_to;
use crate::kernels::listing::{BLOCK, IndexReader, List, blocks, bounds, read_places};
use crate::kernels::partition::{Item, Partition, may_partition};
use crate::kernels::positions::Shared;
use crate::kernels::ranges::Ranges;
use crate::memory::{Plain, Scratch, Space};
use crate::threads;
use crate::tuning::{SCANNED, WAVE};
use crate::walk::Run;

/// How the entries of a call are shared among threads.
pub(super) enum Plan {
    /// The threads share the slabs. Each reads the index in order and writes all entries.
    InOrder { parts: usize },
    /// The index is sorted, as far as a sample tells. The threads share slices of it: the first entry
    /// of each and its place.
    Sliced { slices: Vec<(usize, usize)> },
    /// Each thread reads the whole index and writes the entries whose places it owns. It is used by
    /// few threads.
    Scanned { parts: usize },
    /// The entries are partitioned by ranges of places. The threads share the ranges. The work does
    /// not grow with the number of threads.
    Partitioned { parts: usize },
}

/// What was found while entries were written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    All,
    /// An entry is out of range.
    Outside,
    /// An entry names a place that belongs to another slice.
    Elsewhere,
}

/// A piece of the work: some elements of the rows of one range of places.
struct Piece {
    /// The number of the range.
    range: usize,
    elements: Range<usize>,
    /// Its words of the buffer for notes.
    notes: Range<usize>,
}

impl Direct<'_> {
    /// Returns how the entries are shared among threads.
    pub(super) fn plan(&self, index: &IndexReader<'_>) -> Plan {
        let parts = self.parts(index.len());
        let threads = parts.min(threads::num_threads());
        let alone = parts == 1 && self.assigns_at_once().is_some();
        if self.slabs() >= threads && !alone || !may_partition(index.len(), self.places()) {
            return Plan::InOrder { parts: parts.min(self.slabs()) };
        }
        let slices = (parts > 1).then(|| {
            let apart = self.call.combine != Combine::Assign;
            index.slices(parts.div_ceil(self.slabs()), self.places(), apart)
        });
        match slices.flatten() {
            Some(slices) => Plan::Sliced { slices },
            None => self.unsorted(parts),
        }
    }

    /// Returns how the entries of an index that is not sorted are shared among threads.
    fn unsorted(&self, parts: usize) -> Plan {
        let threads = parts.min(threads::num_threads());
        match threads <= SCANNED.get() {
            true => Plan::Scanned { parts: threads.div_ceil(self.slabs()) },
            false => Plan::Partitioned { parts: parts.div_ceil(self.slabs()) },
        }
    }

    /// Returns the number of parts that are wanted for the threads.
    fn parts(&self, entries: usize) -> usize {
        let cost = 2 * self.row_bytes() + size_of::<i64>();
        threads::parts(entries.saturating_mul(self.slabs()), cost)
    }

    /// Returns whether the user's index can be used without a private copy if the destination is
    /// fresh, because each value is read once.
    pub(super) fn reads_index_once(&self, plan: &Plan) -> bool {
        matches!(plan, Plan::Partitioned { .. } | Plan::InOrder { .. }) || self.slabs() == 1
    }

    /// Writes all entries. Returns false if an entry is out of range; then some of the places were
    /// written.
    pub(super) fn run(&self, plan: &Plan, index: &IndexReader<'_>) -> Result<bool> {
        match *plan {
            Plan::InOrder { parts } => self.in_order(parts, index),
            Plan::Sliced { ref slices } => match self.sliced(slices, index)? {
                Some(inside) => Ok(inside),
                None => self.run(&self.unsorted(self.parts(index.len())), index),
            },
            Plan::Scanned { parts } => self.scanned(parts, index),
            Plan::Partitioned { parts } if self.is_flat() => match self.call.dst.dtype().size() {
                1 => self.partitioned(parts, index, |entry| {
                    u32::from_ne_bytes([self.word::<u8>(entry), 0, 0, 0])
                }),
                2 => self.partitioned(parts, index, |entry| {
                    let [a, b] = self.word::<u16>(entry).to_ne_bytes();
                    u32::from_ne_bytes([a, b, 0, 0])
                }),
                4 => self.partitioned(parts, index, |entry| self.word::<u32>(entry)),
                _ => self.partitioned(parts, index, |entry| self.word::<u64>(entry)),
            },
            Plan::Partitioned { parts } => match self.call.selected {
                Some(selected) => self.partitioned(parts, index, |entry| selected[entry] as u32),
                None => self.partitioned(parts, index, |entry| entry as u32),
            },
        }
    }

    /// Returns the update of an entry, if rows are single values of the size of a `W`.
    #[inline(always)]
    fn word<W: Plain>(&self, entry: usize) -> W {
        // SAFETY: the plan is chosen for contiguous values, and there is one for each entry.
        unsafe { self.call.updates.origin().cast::<W>().add(entry).read_unaligned() }
    }

    /// Writes all entries in index order. Threads share the slabs.
    fn in_order(&self, parts: usize, index: &IndexReader<'_>) -> Result<bool> {
        let notes = Notes::of(self.call.combine);
        let words = notes.words(self.places(), index.len());
        let mut space = Space::<u32>::new(words.saturating_mul(parts))?;
        // The index is read once for all slabs.
        let many = self.slabs() > 1;
        let mut places = Scratch::<u32>::new(if many { index.len() } else { 0 })?;
        if many && !self.read_all(index, &mut places) {
            return Ok(false);
        }
        let item = |(&place, &row): (&u32, &i64)| Item { place, beside: row as u32 };
        let items: Option<Vec<Item<u32>>> =
            self.call.selected.map(|selected| places.iter().zip(selected).map(item).collect());
        let listed = match &items {
            Some(items) => Listed::Numbered(items, &[]),
            None => Listed::InOrder(&places),
        };
        if let Some(base) = self.call.base {
            copy_to(self.call.dst, base);
        }
        let (writers, space) = (self.writers(), Shared(space.as_mut_ptr()));
        let (own, inside) = (0..self.places(), AtomicBool::new(true));
        threads::run(parts, |part| {
            // SAFETY: the buffer has this many initialized words for each part.
            let space =
                unsafe { std::slice::from_raw_parts_mut(space.get().add(part * words), words) };
            let slabs = threads::part_of(self.slabs(), parts, part);
            for slab in slabs.clone() {
                // All slabs but the first may be able to use the notes of the first one.
                let again = writers.again.filter(|_| slab > slabs.start);
                if again.is_none() {
                    notes.clear(space);
                }
                let writers = Writers { write: again.unwrap_or(writers.write), ..writers };
                self.rows.runs(self.slab(slab), |run| {
                    if many {
                        let task = Task { run, own: &own, first: 0, listed, stage: None };
                        // SAFETY: as for `Slice::write`; `read_all` has checked the places.
                        unsafe { (writers.write)(self, &task, space) };
                        return self.end((run, None), &own, writers, space);
                    }
                    let mut room: Room = [const { MaybeUninit::uninit() }; BLOCK];
                    let mut slice = Slice::new(self, index, 0..index.len(), &own, &mut room);
                    if slice.write(run, writers, space) != Found::All {
                        inside.store(false, Relaxed);
                    }
                });
            }
        });
        Ok(inside.into_inner())
    }

    /// Reads the places of all entries. Returns false if an entry is out of range.
    fn read_all(&self, index: &IndexReader<'_>, places: &mut [u32]) -> bool {
        assert_eq!(places.len(), index.len(), "a place for each entry");
        let (to, inside) = (Shared(places.as_mut_ptr()), AtomicBool::new(true));
        threads::split(index.len(), size_of::<i64>() + size_of::<u32>(), |own| {
            let mut values = [const { MaybeUninit::uninit() }; BLOCK];
            for block in blocks(own) {
                // SAFETY: blocks lie inside of the places, and threads have different ones.
                let places = unsafe {
                    std::slice::from_raw_parts_mut(to.get().add(block.start), block.len())
                };
                if !read_places(index.values(block, &mut values), self.places(), places) {
                    return inside.store(false, Relaxed);
                }
            }
        });
        inside.into_inner()
    }

    /// Writes all entries of a sorted index. Each slice of the entries owns the places that it
    /// names. Returns `None` if the index turns out not to be sorted; then nothing was written,
    /// unless the destination is fresh.
    fn sliced(&self, slices: &[(usize, usize)], index: &IndexReader<'_>) -> Result<Option<bool>> {
        let ends = slices[1..].iter().copied().chain([(index.len(), self.places())]);
        let slices = slices.iter().zip(ends).map(|(start, end)| (start.0..end.0, start.1..end.1));
        let slices: Vec<(Range<usize>, Range<usize>)> = slices.collect();
        let sizes = slices.iter().map(|(entries, own)| (entries.len(), own.len()));
        let (pieces, words) = self.pieces(sizes, index.len());
        let mut space = Scratch::<u32>::new(words)?;
        match (self.call.base, index) {
            (Some(base), _) => copy_to(self.call.dst, base),
            (None, IndexReader::Checked(positions)) => {
                let (values, sorted) = (positions.values(), AtomicBool::new(true));
                threads::run(slices.len(), |slice| {
                    let (entries, own) = &slices[slice];
                    if !self.owns_all(own, &values[entries.clone()]) {
                        sorted.store(false, Relaxed);
                    }
                });
                if !sorted.into_inner() {
                    return Ok(None);
                }
            }
            (None, IndexReader::Raw(_)) => unreachable!("in place, the index is checked first"),
        }
        let (writers, notes) = (self.writers(), Notes::of(self.call.combine));
        let (inside, sorted) = (AtomicBool::new(true), AtomicBool::new(true));
        self.each_piece(&pieces, &mut space, |piece, run, space| {
            notes.clear(space);
            let (entries, own) = &slices[piece.range];
            let mut room: Room = [const { MaybeUninit::uninit() }; BLOCK];
            let mut slice = Slice::new(self, index, entries.clone(), own, &mut room);
            match slice.write(run, writers, space) {
                Found::All => {}
                Found::Outside => inside.store(false, Relaxed),
                Found::Elsewhere => sorted.store(false, Relaxed),
            }
        });
        Ok(sorted.into_inner().then_some(inside.into_inner()))
    }

    /// Returns whether a slice that owns these places may have entries with these positions.
    fn owns_all(&self, own: &Range<usize>, positions: &[i64]) -> bool {
        let [first, last] = [own.start as i64, self.last(own) as i64];
        positions.iter().fold(true, |all, &at| all & (at >= first) & (at <= last))
    }

    /// Returns the last place that an entry of a slice may name. An assignment to the first place of
    /// the next slice has no effect, because that slice assigns it again.
    fn last(&self, own: &Range<usize>) -> usize {
        let assigns = self.call.combine == Combine::Assign && own.end < self.places();
        if assigns { own.end } else { own.end - 1 }
    }

    /// Writes all entries. Threads share ranges of places, and each reads the whole index.
    fn scanned(&self, parts: usize, index: &IndexReader<'_>) -> Result<bool> {
        let ranges = Ranges::new(index, self.places(), parts, self.align(parts)).all;
        // Any range may have all entries, as far as the list of overflows of counts is concerned.
        let sizes = ranges.iter().map(|own| (index.len(), own.len()));
        let (pieces, words) = self.pieces(sizes, usize::MAX);
        let mut space = Scratch::<u32>::new(words)?;
        if let Some(base) = self.call.base {
            copy_to(self.call.dst, base);
        }
        let (writers, notes) = (self.writers(), Notes::of(self.call.combine));
        let inside = AtomicBool::new(true);
        self.each_piece(&pieces, &mut space, |piece, run, space| {
            notes.clear(space);
            let own = &ranges[piece.range];
            self.staged(&run, own, |stage| {
                if !self.scan((run, stage), own, index, writers, space) {
                    inside.store(false, Relaxed);
                }
            });
        });
        Ok(inside.into_inner())
    }

    /// Writes the entries that name a place of `own`. Returns whether all entries are in range.
    fn scan(
        &self,
        (run, stage): (Run<3>, Option<*mut u8>),
        own: &Range<usize>,
        index: &IndexReader<'_>,
        writers: Writers,
        space: &mut [u32],
    ) -> bool {
        let at_once = self.assigns_at_once();
        let words = self.of_values() && self.call.dst.dtype().size() == size_of::<u32>();
        let (mut list, mut room) = (List::new(), [const { MaybeUninit::uninit() }; BLOCK]);
        let mut inside = true;
        for block in index.blocks() {
            let values = index.values(block.clone(), &mut room);
            let first = if self.call.selected.is_some() { 0 } else { block.start };
            let mut task = Task { run, own, first, listed: Listed::InOrder(&[]), stage };
            // SAFETY: as for `Slice::write`. `List` and `assign_scanned` keep places inside of the
            // range and entries inside of the block, even if another thread changes the index. With
            // `words`, a row of updates is one contiguous word for each entry.
            unsafe {
                if let Some(assign) = at_once {
                    inside &= assign(self, &task, values).is_some();
                    continue;
                }
                let data = (self.origins(&task).1, self.steps[2]);
                if let Some(selected) = self.call.selected {
                    let selected = &selected[block];
                    let data = (selected.as_ptr().cast(), size_of::<i64>() as isize);
                    inside &= list.fill::<false>(values, self.places(), own, data);
                    list.replace_by(selected);
                } else if words {
                    inside &= list.fill::<true>(values, self.places(), own, data);
                } else {
                    inside &= list.fill::<false>(values, self.places(), own, data);
                }
                task.listed = u32::listed(list.items(), &[], words);
                (writers.write)(self, &task, space);
            }
        }
        self.end((run, stage), own, writers, space);
        inside
    }

    /// Writes all entries. Threads share ranges of places.
    fn partitioned<P: Beside>(
        &self,
        parts: usize,
        index: &IndexReader<'_>,
        beside: impl Fn(usize) -> P + Sync,
    ) -> Result<bool> {
        let (places, notes) = (self.places(), Notes::of(self.call.combine));
        let wave = wave(index.len(), places, self.row_bytes(), notes);
        let align = self.align(parts);
        let mut entries = Partition::new(index, places, parts, align, wave)?;
        if !entries.fill(index, 0..wave, &beside)? {
            return Ok(false);
        }
        let ranges = entries.ranges().to_vec();
        // With counts there is one wave, so these are all entries of a range. Otherwise an estimate is
        // enough.
        let len = |range: usize| match notes {
            Notes::Counted { .. } => entries.len_of(range),
            _ => entries.expected(range, wave),
        };
        let lens: Vec<usize> = (0..ranges.len()).map(len).collect();
        let sizes = lens.iter().copied().zip(ranges.iter().map(|own| own.len()));
        let (pieces, words) = self.pieces(sizes, wave);
        let mut space = Scratch::<u32>::new(words)?;
        // The old values of a range are copied just before it is written, if one thread writes it.
        let mut by_range = vec![true; ranges.len()];
        for two in pieces.windows(2).filter(|two| two[0].range == two[1].range) {
            by_range[two[0].range] = false;
        }
        let before = by_range.iter().zip(&ranges).filter(|(by_range, _)| !**by_range);
        before.for_each(|(_, own)| self.copy_base(own));
        let writers = self.writers();
        for start in (0..index.len()).step_by(wave) {
            let own = start..(start + wave).min(index.len());
            let (first, last) = (start == 0, own.end == index.len());
            if !first && !entries.fill(index, own, &beside)? {
                return Ok(false);
            }
            self.each_piece(&pieces, &mut space, |piece, run, space| {
                let own = &ranges[piece.range];
                if first {
                    notes.clear(space);
                    if by_range[piece.range] {
                        self.copy_base(own);
                    }
                }
                self.staged(&run, own, |stage| {
                    entries.each_segment(piece.range, |segment, next| {
                        let listed = P::listed(segment, next, self.is_flat());
                        let task = Task { run, own, first: 0, listed, stage };
                        // SAFETY: as for `Slice::write`. The places of a segment lie inside of its
                        // range, and numbers are those of entries or were checked by the caller.
                        unsafe { (writers.write)(self, &task, space) };
                    });
                    if last {
                        self.end((run, stage), own, writers, space);
                    }
                });
            });
        }
        Ok(true)
    }

    /// Calls `work` with the address of a copy of the places of a range, and copies them back, if the
    /// range is so short that it shares cache lines with others, which other threads write.
    /// Otherwise it calls `work` with `None`.
    fn staged(&self, run: &Run<3>, own: &Range<usize>, work: impl FnOnce(Option<*mut u8>)) {
        let bytes = own.len() * self.row_bytes();
        let whole = self.may_stage() && run.len == self.row_len();
        if !whole || bytes > STAGED {
            return work(None);
        }
        let mut stage = [const { MaybeUninit::<u8>::uninit() }; STAGED];
        let stage = stage.as_mut_ptr().cast::<u8>();
        // SAFETY: the places of a range are contiguous and lie inside of the destination. The stage
        // has room for them, and is written before it is read. No other thread has these places.
        unsafe {
            let by = run.offsets[0] + own.start as isize * self.steps[0];
            let to = self.call.dst.origin().offset(by);
            std::ptr::copy_nonoverlapping(to, stage, bytes);
            work(Some(stage));
            std::ptr::copy_nonoverlapping(stage, to, bytes);
        }
    }

    /// Returns whether the destination is contiguous, one row after the other.
    fn may_stage(&self) -> bool {
        let bytes = self.row_bytes() as isize;
        self.slabs() == 1 && !self.with_gaps() && self.steps[0] == bytes
    }

    /// Returns a number of places at whose multiples ranges for `parts` should begin. Long ranges
    /// begin with a cache line. Short ones are copied before they are written.
    fn align(&self, parts: usize) -> usize {
        let short = self.places().saturating_mul(self.row_bytes()) / parts.max(1) < STAGED / 2;
        if short && self.may_stage() { 1 } else { LINE.div_ceil(self.row_bytes()) }
    }

    /// Copies the old values of a range of places, if there is a base. They are still in a cache
    /// when they are used.
    fn copy_base(&self, own: &Range<usize>) {
        let RowScatter { dst, base: Some(base), axis, .. } = self.call else { return };
        let part = ResolvedSlice { start: own.start, step: 1, len: own.len() };
        let (to, from) = (dst.layout().slice(axis, part), base.layout().slice(axis, part));
        let by = |layout: &Layout| own.start as isize * layout.strides()[axis];
        // SAFETY: the range lies inside of the axis of both views, which have one shape.
        let (to, from) =
            unsafe { (dst.part(by(dst.layout()), &to), base.part(by(base.layout()), &from)) };
        copy_to(to, from);
    }

    /// Splits the work on ranges, each with its numbers of entries and of places, into pieces, the
    /// longest first. The rows of a range that has more than a thread's share of the entries are
    /// split into columns. Also returns how many words all notes take.
    fn pieces(
        &self,
        ranges: impl Iterator<Item = (usize, usize)>,
        entries: usize,
    ) -> (Vec<Piece>, usize) {
        let notes = Notes::of(self.call.combine);
        let share = (entries / threads::num_threads()).max(1);
        let most = if self.with_gaps() { 1 } else { (self.row_bytes() / COLUMN).max(1) };
        let (mut pieces, mut words) = (vec![], 0);
        for (range, (entries, places)) in ranges.enumerate() {
            let columns = entries.div_ceil(share).clamp(1, most);
            let columns = if columns < FEWEST { 1 } else { columns };
            for slab in 0..self.slabs() {
                let Range { start, .. } = self.slab(slab);
                for column in 0..columns {
                    let lines = threads::part_of(most, columns, column);
                    let at = |line: usize| start + line * self.row_len() / most;
                    let notes = words..words + notes.words(places, entries);
                    // Threads that write notes share no cache line.
                    words = notes.end.next_multiple_of(LINE / size_of::<u32>());
                    let piece = Piece { range, elements: at(lines.start)..at(lines.end), notes };
                    pieces.push((entries / columns, piece));
                }
            }
        }
        pieces.sort_by_key(|(weight, piece)| (std::cmp::Reverse(*weight), piece.range));
        (pieces.into_iter().map(|(_, piece)| piece).collect(), words)
    }

    /// Calls `work` with each piece, its run of elements and its words for notes.
    fn each_piece(
        &self,
        pieces: &[Piece],
        space: &mut [u32],
        work: impl Fn(&Piece, Run<3>, &mut [u32]) + Sync,
    ) {
        assert!(pieces.iter().all(|piece| piece.notes.end <= space.len()), "room for all notes");
        let space = Shared(space.as_mut_ptr());
        threads::run(pieces.len(), |number| {
            let piece = &pieces[number];
            // SAFETY: the buffer is initialized and long enough, as was just checked, and pieces
            // have different words of it.
            let words = unsafe {
                let words = space.get().add(piece.notes.start);
                std::slice::from_raw_parts_mut(words, piece.notes.len())
            };
            self.rows.runs(piece.elements.clone(), |run| work(piece, run, words));
        });
    }

    /// Calls the function that is called after the last task of a range.
    fn end(
        &self,
        (run, stage): (Run<3>, Option<*mut u8>),
        own: &Range<usize>,
        writers: Writers,
        space: &mut [u32],
    ) {
        if let Some(end) = writers.end {
            let task = Task { run, own, first: 0, listed: Listed::InOrder(&[]), stage };
            // SAFETY: as for the tasks of the range, which the caller has written; there are no
            // entries.
            unsafe { end(self, &task, space) };
        }
    }
}

/// Memory for the places of a block. It is made by the caller of [`Slice::new`], because moving it
/// would take most of the time of a small call.
type Room = [MaybeUninit<u32>; BLOCK];

/// Entries that are written in index order to the places of `own`.
struct Slice<'s> {
    direct: &'s Direct<'s>,
    index: &'s IndexReader<'s>,
    entries: Range<usize>,
    own: &'s Range<usize>,
    /// The places of a block, relative to `own`.
    places: &'s mut [u32],
}

impl<'s> Slice<'s> {
    fn new(
        direct: &'s Direct<'s>,
        index: &'s IndexReader<'s>,
        entries: Range<usize>,
        own: &'s Range<usize>,
        room: &'s mut Room,
    ) -> Self {
        // Clearing all of it would take most of the time of a small call.
        let used = &mut room[..entries.len().min(BLOCK)];
        used.iter_mut().for_each(|place| _ = place.write(0));
        // SAFETY: all of these were just written.
        let places =
            unsafe { std::slice::from_raw_parts_mut(used.as_mut_ptr().cast(), used.len()) };
        Slice { direct, index, entries, own, places }
    }

    /// Writes a run of all entries. It stops at an entry that is out of range, or that the slice
    /// does not own.
    fn write(&mut self, run: Run<3>, writers: Writers, space: &mut [u32]) -> Found {
        let Slice { direct, index, own, .. } = *self;
        let mut values = [const { MaybeUninit::uninit() }; BLOCK];
        let (at_once, selected) = (direct.assigns_at_once(), direct.call.selected);
        let (whole, last) = (own.len() == direct.places(), direct.last(own));
        let mut numbered: Vec<Item<u32>> = vec![];
        for block in blocks(self.entries.clone()) {
            if let Some(assign) = at_once {
                let values = index.values(block.clone(), &mut values);
                let listed = Listed::InOrder(&[]);
                let task = Task { run, own, first: block.start, listed, stage: None };
                // SAFETY: as below; the function checks each place.
                match unsafe { assign(direct, &task, values) } {
                    Some([low, high]) if whole || low >= own.start && high <= last => continue,
                    Some(_) => return Found::Elsewhere,
                    None => return Found::Outside,
                }
            }
            let places = &mut self.places[..block.len()];
            let values = index.values(block.clone(), &mut values);
            if !read_places(values, direct.places(), places) {
                return Found::Outside;
            }
            if !whole {
                let [low, high] = bounds(places).map(|place| place as usize);
                if low < own.start || high > last {
                    return Found::Elsewhere;
                }
                places.iter_mut().for_each(|place| *place -= own.start as u32);
            }
            // Entries that name the first place of the next slice are left out.
            let outside = |place: u32| place as usize >= own.len();
            let others = !whole && places.iter().any(|&at| outside(at));
            let (first, listed) = if selected.is_some() || others {
                numbered.clear();
                for (&place, entry) in places.iter().zip(block).filter(|(at, _)| !outside(**at)) {
                    let row = selected.map_or(entry - self.entries.start, |to| to[entry] as usize);
                    numbered.push(Item { place, beside: row as u32 });
                }
                let first = if selected.is_some() { 0 } else { self.entries.start };
                (first, Listed::Numbered(&numbered, &[]))
            } else {
                (block.start, Listed::InOrder(&*places))
            };
            let task = Task { run, own, first, listed, stage: None };
            // SAFETY: `RowScatter::expect_sound` has checked the views. The walk keeps the run inside
            // of the rows. The places were checked and are a private copy, and blocks lie inside of
            // the entries. No other thread has the same places and elements, or the same words.
            unsafe { (writers.write)(direct, &task, space) };
        }
        direct.end((run, None), own, writers, space);
        Found::All
    }
}

/// Returns how many of the entries are partitioned at a time, with rows of `row` bytes. What is
/// partitioned should stay in the last-level cache, unless the destination is too large for it: then
/// each place should be written at one time.
fn wave(entries: usize, places: usize, row: usize, notes: Notes) -> usize {
    // The list of overflows of counts is made for all entries.
    let counts = matches!(notes, Notes::Counted { .. });
    let whole = counts || places.saturating_mul(row) > caches().last / 2;
    let near = (WAVE.get() / (row + size_of::<Item<u64>>())).max(IN_WAVE * threads::num_threads());
    // All waves are equally long.
    let waves = if whole { 1 } else { entries.div_ceil(near) };
    entries.div_ceil(waves.max(1)).max(1)
}

/// The fewest entries of a thread in a wave. With fewer, threads would wait for each other more often
/// than they would work. The items of a thread stay in its second-level cache.
const IN_WAVE: usize = 16 << 10;

/// The fewest bytes of a column.
const COLUMN: usize = 128;

/// The fewest columns of a row. Pieces of rows are read more slowly than whole rows in the order of
/// memory, so fewer threads would gain nothing. (Processor time of 100k rows of 512 `f32` that all go
/// to one place: 7 ms by one thread, 17 ms by 4, 27 ms by 16. 1M rows of 64 `f32`: 14 ms by one
/// thread, 29 ms by 2.)
const FEWEST: usize = 4;

/// Ranges of up to this many bytes are copied before they are written.
const STAGED: usize = 2 << 10;
