//! Writes several parts of one fresh tensor together, in the order in which it lies in memory.
//!
//! One part after the other would send every line through the caches once for each part that has
//! some of it; chunk by chunk, each line is complete before the next is begun.

use smallvec::SmallVec;

use super::copy::{copy, move_run};
use crate::number::dispatch_width;
use crate::stream;
use crate::tuning::STREAM;
use crate::view::Span;
use crate::walk::Walk;
use crate::{Dst, Src, threads};

/// Bytes that all parts write before they go on: half of the smallest second-level cache in use,
/// and long enough that finding each part's place in it does not show.
const CHUNK: usize = 128 << 10;

/// Shorter runs than this gain nothing from being streamed: their ends are ordinary writes.
const STREAMED_RUN: usize = 512;

/// Copies each source to its destination; where destinations share an element, the last one wins.
///
/// The destinations are views of one tensor: their elements are the same or lie apart.
pub fn overlay(parts: &[(Dst<'_>, Src<'_>)]) {
    overlay_with(STREAM.get(), parts);
}

/// [`overlay`], streaming results of at least `stream` bytes.
pub(super) fn overlay_with(stream: usize, parts: &[(Dst<'_>, Src<'_>)]) {
    let parts: SmallVec<[Part<'_>; 5]> =
        parts.iter().filter(|(dst, _)| dst.layout().numel() > 0).map(Part::new).collect();
    if parts.iter().any(|part| part.size != parts[0].size || !part.on_grid_of(&parts[0])) {
        unreachable!("views of one tensor");
    }
    // Where runs jump through the source, the order of the destination is not what matters.
    if parts.len() < 2 || parts.iter().any(|part| !part.is_smooth()) {
        return parts.iter().for_each(|part| copy(part.dst, part.src));
    }
    let low = parts.iter().map(|part| part.low).min().unwrap_or(0);
    let high = parts.iter().map(|part| part.high).max().unwrap_or(0);
    // What is written over again had better stay in a cache until then; a diagonal is no matter.
    let written: usize = parts.iter().map(|part| part.walk.len() * part.size).sum();
    let streams = high - low >= stream && written <= (high - low) / 16 * 17;
    // Chunks begin at whole lines.
    let low = low / stream::LINE * stream::LINE;
    threads::split((high - low).div_ceil(CHUNK), 2 * CHUNK, |chunks| {
        for chunk in chunks {
            let start = low + chunk * CHUNK;
            for part in &parts {
                part.write(start, start + CHUNK, streams);
            }
        }
        if streams {
            stream::fence();
        }
    });
}

struct Part<'a> {
    dst: Dst<'a>,
    src: Src<'a>,
    walk: Walk<2>,
    size: usize,
    /// The addresses that it writes lie between these.
    low: usize,
    high: usize,
}

impl<'a> Part<'a> {
    fn new((dst, src): &(Dst<'a>, Src<'a>)) -> Self {
        dst.expect_apart(src);
        let size = dst.same_size(src);
        let walk = Walk::in_memory_order([dst.layout(), src.layout()]);
        let Span { low, high } = dst.span();
        Part { dst: *dst, src: *src, walk, size, low, high }
    }

    /// Whether an element of this part and one of the other are the same or lie apart.
    fn on_grid_of(&self, other: &Part<'_>) -> bool {
        let whole = |by: isize| by % self.size as isize == 0;
        let apart = (self.low as isize).wrapping_sub(other.low as isize);
        whole(apart) && self.dst.layout().strides().iter().all(|&stride| whole(stride))
    }

    /// Whether runs read neighbours, or one element again and again.
    fn is_smooth(&self) -> bool {
        let [_, from] = self.walk.run_strides();
        from == self.size as isize || from == 0 || self.walk.run_len() == 1
    }

    /// Writes the elements that begin at the addresses from `start` up to `end`.
    fn write(&self, start: usize, end: usize, streams: bool) {
        let origin = self.dst.origin() as usize;
        let below = |address: usize| self.walk.below(address.wrapping_sub(origin) as isize);
        let size = self.size as isize;
        let streams = streams && self.walk.run_len() * self.size >= STREAMED_RUN;
        dispatch_width!(self.size, W => self.walk.runs(below(start)..below(end), |run| {
            // SAFETY: the walk stays inside of both layouts, which lie apart; of all elements that
            // begin in this range of addresses, whatever their part, this thread is the only one
            // to write them.
            unsafe {
                let to = self.dst.origin().offset(run.offsets[0]);
                let from = self.src.origin().offset(run.offsets[1]);
                if streams && run.strides == [size; 2] {
                    stream::copy(to, from, run.len * self.size);
                } else {
                    move_run::<W>(to, run.strides[0], from, run.strides[1], run.len);
                }
            }
        }));
    }
}
