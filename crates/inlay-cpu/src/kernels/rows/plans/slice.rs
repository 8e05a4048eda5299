//! Entries of an index that are written in order, block by block.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::super::direct::{Direct, Listed, Task, Writers};
use super::Found;
use crate::kernels::listing::{BLOCK, IndexReader, Repeated, blocks, bounds, read_places};
use crate::kernels::partition::Item;
use crate::walk::Run;

/// Memory for the places of a block. It is made by the caller of [`Slice::new`], because moving it
/// would take most of the time of a small call.
pub(super) type Room = [MaybeUninit<u32>; BLOCK];

/// Entries that are written in index order to the places of `own`.
pub(super) struct Slice<'s> {
    direct: &'s Direct<'s>,
    index: &'s IndexReader<'s>,
    entries: Range<usize>,
    own: &'s Range<usize>,
    /// The address of the first place, if a copy of the places is written.
    stage: Option<*mut u8>,
    /// The places of a block, relative to `own`.
    places: &'s mut [u32],
}

impl<'s> Slice<'s> {
    pub(super) fn new(
        direct: &'s Direct<'s>,
        index: &'s IndexReader<'s>,
        entries: Range<usize>,
        (own, stage): (&'s Range<usize>, Option<*mut u8>),
        room: &'s mut Room,
    ) -> Self {
        // Clearing all of it would take most of the time of a small call.
        let used = &mut room[..entries.len().min(BLOCK)];
        used.iter_mut().for_each(|place| _ = place.write(0));
        // SAFETY: all of these were just written.
        let places =
            unsafe { std::slice::from_raw_parts_mut(used.as_mut_ptr().cast(), used.len()) };
        Slice { direct, index, entries, own, stage, places }
    }

    /// Writes a run of all entries. It stops at an entry that is out of range, or that the slice
    /// does not own.
    pub(super) fn write(&mut self, run: Run<3>, writers: Writers, space: &mut [u32]) -> Found {
        let Slice { direct, index, own, stage, .. } = *self;
        let mut values = [const { MaybeUninit::uninit() }; BLOCK];
        let (at_once, selected) = (direct.assigns_at_once(), direct.call.selected);
        let (whole, last) = (own.len() == direct.places(), direct.last(own));
        let joins = writers.at_once.filter(|_| whole && selected.is_none());
        let mut numbered: Vec<Item<u32>> = vec![];
        for block in blocks(self.entries.clone()) {
            if let Some(assign) = at_once {
                let values = index.values(block.clone(), &mut values);
                let listed = Listed::InOrder(&[]);
                let task = Task { run, own, first: block.start, listed, stage };
                // SAFETY: as below; the function checks each place.
                match unsafe { assign(direct, &task, values) } {
                    Some([low, high]) if whole || low >= own.start && high <= last => continue,
                    Some(_) => return Found::Elsewhere,
                    None => return Found::Outside,
                }
            }
            let values = index.values(block.clone(), &mut values);
            if let Some(join) = joins.filter(|_| !values.repeat(Repeated::Most)) {
                let listed = Listed::InOrder(&[]);
                let task = Task { run, own, first: block.start, listed, stage };
                // SAFETY: as below; the function checks each place.
                match unsafe { join(direct, &task, values, space) } {
                    true => continue,
                    false => return Found::Outside,
                }
            }
            let places = &mut self.places[..block.len()];
            if !read_places(values, direct.places(), places) {
                return Found::Outside;
            }
            // Entries that name the first place of the next slice are left out.
            let mut others = false;
            if !whole {
                let [low, high] = bounds(places).map(|place| place as usize);
                if low < own.start || high > last {
                    return Found::Elsewhere;
                }
                others = high >= own.end;
                places.iter_mut().for_each(|place| *place -= own.start as u32);
            }
            let outside = |place: u32| place as usize >= own.len();
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
            let task = Task { run, own, first, listed, stage };
            // SAFETY: `RowScatter::expect_sound` has checked the views. The walk keeps the run inside
            // of the rows. The places were checked and are a private copy, and blocks lie inside of
            // the entries. No other thread has the same places and elements, or the same words.
            unsafe { (writers.write)(direct, &task, space) };
        }
        direct.end((run, stage), own, writers, space);
        Found::All
    }
}
