//! Writes several parts of one fresh tensor together, in the order in which it lies in memory.
//!
//! Writing one part after the other would bring a cache line in once for each part that has bytes of it.
//! Here all parts write a chunk of the memory before the next chunk is begun, so each line is complete
//! while it is in the cache.

use inlay_core::Layout;
use smallvec::SmallVec;

use super::copy::{copy_to, move_run};
use crate::number::dispatch_width;
use crate::stream;
use crate::tuning::STREAM;
use crate::view::Target;
use crate::walk::Walk;
use crate::{Dst, Src, threads};

/// Bytes that all parts write before they go on. It is half of the smallest second-level cache in use,
/// and so large that the search for each part's first element in a chunk takes no measurable time.
const CHUNK: usize = 128 << 10;

/// Shorter runs than this many bytes gain nothing from non-temporal stores, because the lines at their
/// ends are written by ordinary stores.
const STREAMED_RUN: usize = 512;

/// Copies each source to its part of `dst`; where parts share an element, the last one wins.
///
/// `dst` is contiguous. A part is a layout over the same memory as the layout of `dst`: its elements are
/// elements of `dst`. Elements that no part has are left as they are.
///
/// # Panics
/// When a part leaves `dst`, lies between its elements or overlaps itself, or when a source overlaps
/// `dst` or has another shape or element size than its part.
pub fn overlay(dst: Dst<'_>, parts: &[(&Layout, Src<'_>)]) {
    overlay_with(STREAM.get(), dst, parts);
}

/// [`overlay`] with non-temporal stores for results of at least `stream` bytes.
pub(super) fn overlay_with(stream: usize, dst: Dst<'_>, parts: &[(&Layout, Src<'_>)]) {
    let dst = dst.into_target();
    let contiguous = dst.layout().is_contiguous(dst.dtype().size());
    assert!(contiguous, "a contiguous destination");
    let parts = parts.iter().filter(|(part, _)| part.numel() > 0);
    let parts: SmallVec<[Part<'_>; 5]> =
        parts.map(|&(part, src)| Part::new(dst, part, src)).collect();
    // Where runs jump through the source, the order of the destination is not what matters.
    if parts.len() < 2 || parts.iter().any(|part| !part.is_smooth()) {
        return parts.iter().for_each(|part| copy_to(part.dst, part.src));
    }
    let low = parts.iter().map(|part| part.low).min().unwrap_or(0);
    let high = parts.iter().map(|part| part.high).max().unwrap_or(0);
    // Bytes that are written twice should stay in the cache in between. A diagonal's are too few to count.
    let written: usize = parts.iter().map(|part| part.walk.len() * part.size).sum();
    let streams = high - low >= stream && written <= (high - low) / 16 * 17;
    // Chunks begin at cache lines.
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

/// A part of the destination and its source.
struct Part<'a> {
    dst: Target<'a>,
    src: Src<'a>,
    walk: Walk<2>,
    size: usize,
    /// The addresses between which its elements lie.
    low: usize,
    high: usize,
}

impl<'a> Part<'a> {
    /// Checks that the elements of `part` are elements of `whole`, which is contiguous.
    fn new(whole: Target<'a>, part: &'a Layout, src: Src<'a>) -> Self {
        whole.expect_apart(&src);
        let size = whole.same_size(&src);
        let (all, own) = (whole.layout().extent(size), part.extent(size));
        let (Some(all), Some(own)) = (all, own) else { panic!("a part inside of the destination") };
        let inside = all.start <= own.start && own.end <= all.end;
        assert!(inside, "a part inside of the destination");
        let aligned = |by: isize| by % size as isize == 0;
        let steps = part.shape().iter().zip(part.strides());
        let steps = steps.filter(|(dim, _)| **dim > 1).all(|(_, &stride)| aligned(stride));
        assert!(steps && aligned((own.start - all.start) as isize), "elements of the destination");
        assert!(!part.overlaps_itself(size), "a part without overlap");
        let by = part.offset() as isize - whole.layout().offset() as isize;
        // SAFETY: the destination has no gaps, so that the elements of a part that lies inside of it, at
        // whole elements, are its elements; they were just seen to be different ones.
        let dst = unsafe { whole.part(by, part) };
        let walk = Walk::in_memory_order([part, src.layout()]);
        let base = whole.origin().addr() - whole.layout().offset();
        Part { dst, src, walk, size, low: base + own.start, high: base + own.end }
    }

    /// Whether runs read neighbours, or one element again and again.
    fn is_smooth(&self) -> bool {
        let [_, from] = self.walk.run_strides();
        from == self.size as isize || from == 0 || self.walk.run_len() == 1
    }

    /// Writes the elements that begin at the addresses from `start` up to `end`.
    fn write(&self, start: usize, end: usize, streams: bool) {
        let origin = self.dst.origin().addr();
        let below = |address: usize| self.walk.below(address.wrapping_sub(origin) as isize);
        let size = self.size as isize;
        let streams = streams && self.walk.run_len() * self.size >= STREAMED_RUN;
        dispatch_width!(self.size, W => self.walk.runs(below(start)..below(end), |run| {
            // SAFETY: the walk stays inside of both layouts. `new` has checked that those of the part are
            // elements of the destination and that the source lies apart from all of it. Elements of
            // different parts are the same or lie apart, and a chunk of addresses is one thread's: it
            // alone writes the elements that begin there, whatever their part.
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
