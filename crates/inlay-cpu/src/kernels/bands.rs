//! Runs a kernel on bands of its operands, in which strided sources are copied to contiguous memory
//! first.
//!
//! A kernel walks in the order of its destination. A source with another order, such as a transposed
//! one, would be read element by element, each from another cache line, and no loop over it could be
//! vectorized. A band is as small as the second-level cache, so each element is moved between memory
//! and caches once, and the copy is made in tiles.

use inlay_core::{DType, Layout, ResolvedSlice, Shape, Strides};

use super::copy::copy_to;
use crate::arch::LINE;
use crate::memory::Scratch;
use crate::tuning::TILE;
use crate::view::{Span, Target};
use crate::walk::Walk;
use crate::{Dst, Src, threads};

/// Sources with fewer bytes are not copied: the whole call takes less time than its preparation.
const SMALL: usize = 16 << 10;

/// The shortest runs for which sources are copied. A shorter run is not copied in tiles.
const SHORTEST: usize = 8;

/// Calls `kernel` with parts of the destination and the same parts of the sources, until the whole
/// destination was written. All of them have one shape. The kernel gets all of it at once if no
/// source is strided.
///
/// # Panics
/// When a source overlaps the destination or differs in shape, if a source is strided. Otherwise the
/// kernel checks that.
pub(super) fn in_bands<const N: usize>(
    dst: Target<'_>,
    sources: [Src<'_>; N],
    kernel: &(dyn Fn(Target<'_>, [Src<'_>; N]) + Sync),
) {
    let copied = sources.map(|src| is_strided(&dst, &src));
    let shape = dst.layout().shape();
    // Bands are ranges of the axis along which the elements of the destination are furthest apart.
    let strides = dst.layout().strides().iter().map(|stride| stride.unsigned_abs());
    let axis = strides.enumerate().filter(|(k, _)| shape[*k] > 1).max_by_key(|&(_, stride)| stride);
    let (Some((axis, _)), true) = (axis, copied.contains(&true)) else {
        return kernel(dst, sources);
    };
    // The kernel sees copies, so it can't check this.
    for src in &sources {
        dst.expect_apart(src);
        assert_eq!(src.layout().shape(), shape, "views of one shape");
    }
    let row = dst.layout().numel() / shape[axis];
    let sizes = sources.map(|src| src.dtype().size());
    let copies = sizes.into_iter().zip(copied).filter(|(_, copied)| *copied);
    let (each, least) =
        copies.fold((0, LINE), |(sum, least), (size, _)| (sum + size, least.min(size)));
    // A band consists of whole cache lines of what is transposed.
    let rows = (TILE.get() / (row * each).max(1)).max(1).next_multiple_of(LINE / least);
    let cost = rows.saturating_mul(row).saturating_mul(2 * dst.dtype().size() + each);
    threads::split(shape[axis].div_ceil(rows), cost, |bands| {
        let room = rows.min(shape[axis]).saturating_mul(row);
        // A source for which there is no memory is not copied.
        let space = |size: usize| Scratch::<u8>::new(room.saturating_mul(size)).ok();
        let spaces: [_; N] = std::array::from_fn(|n| copied[n].then(|| space(sizes[n])).flatten());
        for band in bands {
            let start = band * rows;
            let slice = ResolvedSlice { start, step: 1, len: rows.min(shape[axis] - start) };
            let part = |layout: &Layout| {
                (start as isize * layout.strides()[axis], layout.slice(axis, slice))
            };
            let (by, to) = part(dst.layout());
            let parts = sources.map(|src| part(src.layout()));
            let packed = sizes.map(|size| packed_like(&to, size));
            // SAFETY: the band lies inside of the axis, which has one size in all views. A scratch
            // buffer has room for a band, and only this thread uses it. Its elements are written
            // before they are read.
            unsafe {
                let sources: [Src<'_>; N] = std::array::from_fn(|n| {
                    let (by, layout) = &parts[n];
                    let src = sources[n].part(*by, layout);
                    let Some(space) = &spaces[n] else { return src };
                    let copy = over(space, &packed[n], src.dtype());
                    copy_to(copy, src);
                    copy.as_src()
                });
                kernel(dst.part(by, &to), sources);
            }
        }
    });
}

/// Returns a target in a scratch buffer.
///
/// # Safety
/// The buffer has room for all elements of the layout, nobody else uses it, and elements are written
/// before they are read.
unsafe fn over<'s>(space: &'s Scratch<u8>, layout: &'s Layout, dtype: DType) -> Target<'s> {
    let origin = space.as_ptr().cast_mut();
    let span = Span { low: origin.addr(), high: origin.addr() + space.len() };
    // SAFETY: the caller's promise. No two elements of a layout without gaps overlap.
    unsafe { Dst::new(origin, layout, dtype, span).into_target() }
}

/// Returns whether the elements of a source are not contiguous where those of the destination are.
fn is_strided(dst: &Target<'_>, src: &Src<'_>) -> bool {
    let size = src.dtype().size();
    if dst.layout().numel().saturating_mul(size) < SMALL {
        return false;
    }
    let walk = Walk::in_memory_order([dst.layout(), src.layout()]);
    let [to, from] = walk.run_strides();
    let contiguous = from == size as isize || from == 0;
    to == dst.dtype().size() as isize && !contiguous && walk.run_len() >= SHORTEST
}

/// Returns a layout without gaps, of elements of `size` bytes, in the order of another layout.
fn packed_like(layout: &Layout, size: usize) -> Layout {
    let mut order: Vec<usize> = (0..layout.rank()).collect();
    order.sort_by_key(|&axis| (layout.strides()[axis].unsigned_abs(), std::cmp::Reverse(axis)));
    let mut strides = Strides::from_elem(0, layout.rank());
    let mut next = size;
    for axis in order {
        strides[axis] = next as isize;
        next *= layout.shape()[axis];
    }
    Layout::strided(Shape::from_slice(layout.shape()), strides, 0)
}
