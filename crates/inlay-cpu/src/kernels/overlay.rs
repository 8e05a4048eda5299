//! Writes several parts of a fresh tensor together, in the order of its memory.
//!
//! If one part was written after the other, a cache line with bytes of several parts would be
//! loaded once for each part. Here all parts write one chunk of memory before any part writes the
//! next chunk, so each line is complete while it is in the cache.

use inlay_core::Layout;
use smallvec::SmallVec;

use super::copy::{copy_to, move_run};
use crate::number::dispatch_width;
use crate::stream;
use crate::tuning::STREAM;
use crate::view::Target;
use crate::walk::Walk;
use crate::{Dst, Src, threads};

/// The bytes of a chunk. It is half of the smallest second-level cache in use (256 KiB), and large
/// enough that the search for each part's first element in a chunk takes no measurable time.
const CHUNK: usize = 128 << 10;

/// Runs shorter than this many bytes gain nothing from non-temporal stores, because the incomplete
/// lines at their ends are written by ordinary stores.
const STREAMED_RUN: usize = 512;

/// Copies each source to its part of `dst`. If parts share an element, the last part wins.
///
/// `dst` is contiguous. A part is a layout over the same memory as the layout of `dst`, and its
/// elements are elements of `dst`. Elements that are in no part are not changed.
///
/// # Panics
/// When `dst` is not contiguous, when an element of a part is not an element of `dst`, when a part
/// overlaps itself, or when a source overlaps `dst` or has another shape or element size than its
/// part.
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
    // If the runs of a source are strided, the order in which the source is read matters more than
    // the order of the destination. `copy_to` takes care of that.
    if parts.len() < 2 || parts.iter().any(|part| !part.is_smooth()) {
        return parts.iter().for_each(|part| copy_to(part.dst, part.src));
    }
    let low = parts.iter().map(|part| part.low).min().unwrap_or(0);
    let high = parts.iter().map(|part| part.high).max().unwrap_or(0);
    // Bytes that are written twice should stay in the cache until the second write, so there are no
    // non-temporal stores if more than 1/16 of the bytes are. A diagonal has fewer.
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
    /// The range of addresses that contains the elements of the part.
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
        // SAFETY: the destination is contiguous, and the part lies inside of it at multiples of the
        // element size. So the elements of the part are elements of the destination. It was just
        // checked that they don't overlap each other.
        let dst = unsafe { whole.part(by, part) };
        let walk = Walk::in_memory_order([part, src.layout()]);
        let base = whole.origin().addr() - whole.layout().offset();
        Part { dst, src, walk, size, low: base + own.start, high: base + own.end }
    }

    /// Returns whether the runs of the source are contiguous, repeat one element, or have one
    /// element.
    fn is_smooth(&self) -> bool {
        let [_, from] = self.walk.run_strides();
        from == self.size as isize || from == 0 || self.walk.run_len() == 1
    }

    /// Writes the elements of the part that begin at the addresses `start..end`.
    fn write(&self, start: usize, end: usize, streams: bool) {
        let origin = self.dst.origin().addr();
        let below = |address: usize| self.walk.below(address.wrapping_sub(origin) as isize);
        let size = self.size as isize;
        let streams = streams && self.walk.run_len() * self.size >= STREAMED_RUN;
        dispatch_width!(self.size, W => self.walk.runs(below(start)..below(end), |run| {
            // SAFETY: the walk stays inside of both layouts. `Part::new` has checked that the
            // elements of the part are elements of the destination, and that the source does not
            // overlap the destination. Each chunk of addresses belongs to one thread, and only that
            // thread writes the elements that begin in it, for all parts. Elements of different
            // parts are either the same or don't overlap.
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
