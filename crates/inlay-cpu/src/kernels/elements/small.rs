//! Few elements that lie one after the other: nothing is prepared for them, since that would take longer
//! than to move them.

use inlay_core::{Combine, Layout};

use super::{AxisScatter, Index};
use crate::Src;
use crate::kernels::positions::{FEW_ENTRIES, read_few};
use crate::kernels::reducer::{Reducer, dispatch_reduce, joins_in_place};
use crate::number::dispatch_width;
use crate::view::Target;

/// Bytes of the tensor up to which a call is small: they are copied at once. (8 x 8 floats, 32 entries:
/// a put takes 730 ns instead of 940 with all around it, a take 560 instead of 660.)
const SMALL: usize = 2 << 10;

/// How elements and their entries, both row-major without gaps and of one shape off the axis, count.
struct Sizes {
    outer: usize,
    places: usize,
    count: usize,
    inner: usize,
}

impl Sizes {
    /// Of a tensor of elements of `size`, and entries for it; `None` unless they lie so and are few.
    fn of(whole: &Layout, entries: &Layout, axis: usize, size: usize) -> Option<Self> {
        let (shape, part) = (whole.shape(), entries.shape());
        let fits = shape.len() == part.len()
            && (0..shape.len()).all(|k| k == axis || shape[k] == part[k])
            && whole.numel().saturating_mul(size) <= SMALL
            && entries.numel() <= FEW_ENTRIES
            && whole.is_contiguous(size);
        fits.then(|| Sizes {
            outer: shape[..axis].iter().product(),
            places: shape[axis],
            count: part[axis],
            inner: shape[axis + 1..].iter().product(),
        })
    }

    /// Calls `visit` with the number of each entry's element in the tensor and that of the entry itself,
    /// both below how many there are; entries of a lane in their order.
    #[inline(always)]
    fn each(&self, places: &[usize], mut visit: impl FnMut(usize, usize)) {
        let mut entries = places.iter().enumerate();
        for outer in 0..self.outer {
            for _ in 0..self.count {
                for (inner, (entry, place)) in (0..self.inner).zip(&mut entries) {
                    visit((outer * self.places + place) * self.inner + inner, entry);
                }
            }
        }
    }
}

/// Writes a small scatter. False if it is not one, or if an entry is out of range: then nothing was
/// written.
pub(super) fn scatter(call: &AxisScatter<'_>, base: Option<Src<'_>>, index: &Index<'_>) -> bool {
    let AxisScatter { dst, axis, values, combine } = *call;
    let size = dst.same_size(&values);
    let Some(sizes) = Sizes::of(dst.layout(), index.values.layout(), axis, size) else {
        return false;
    };
    let alike = |base: &Src<'_>| {
        base.layout().shape() == dst.layout().shape() && base.layout().is_contiguous(size)
    };
    let suits = index.values.layout().shape() == values.layout().shape()
        && values.layout().is_contiguous(size)
        && base.as_ref().is_none_or(alike)
        && joins_in_place(combine, dst.dtype());
    let mut room = [0; FEW_ENTRIES];
    if !suits {
        return false;
    }
    let Some(places) = read_few(index.values, sizes.places, &mut room) else { return false };
    if let Some(base) = base {
        let bytes = dst.layout().numel() * size;
        // SAFETY: both have so many bytes without gaps; `scatter_elements` has checked that they lie apart
        // and have elements of one size.
        unsafe { dst.origin().copy_from_nonoverlapping(base.origin(), bytes) };
    }
    let (to, from) = (dst.origin(), values.origin());
    match combine {
        Combine::Assign => dispatch_width!(size, W => sizes.each(places, |element, entry| {
            // SAFETY: `each` gives numbers of elements of both views, which are contiguous; that they have
            // elements of one size and lie apart was checked by `scatter_elements`.
            unsafe {
                let value = from.cast::<W>().add(entry).read_unaligned();
                to.cast::<W>().add(element).write_unaligned(value);
            }
        })),
        Combine::Reduce { reduce, .. } => dispatch_reduce!(reduce, dst.dtype(), (T, R) => {
            sizes.each(places, |element, entry| {
                // SAFETY: as above; `scatter_elements` has checked that both are of this dtype.
                unsafe {
                    let (to, value) = (to.cast::<T>().add(element), from.cast::<T>().add(entry));
                    let joined =
                        <R as Reducer<T>>::merge(to.read_unaligned(), value.read_unaligned());
                    to.write_unaligned(joined);
                }
            });
        }),
    }
    true
}

/// Reads a few elements. False if they are many, or if an entry is out of range.
pub(super) fn gather(dst: Target<'_>, src: Src<'_>, axis: usize, index: &Index<'_>) -> bool {
    let size = dst.same_size(&src);
    let Some(sizes) = Sizes::of(src.layout(), index.values.layout(), axis, size) else {
        return false;
    };
    let suits =
        index.values.layout().shape() == dst.layout().shape() && dst.layout().is_contiguous(size);
    let mut room = [0; FEW_ENTRIES];
    if !suits {
        return false;
    }
    let Some(places) = read_few(index.values, sizes.places, &mut room) else { return false };
    let (to, from) = (dst.origin(), src.origin());
    dispatch_width!(size, W => sizes.each(places, |element, entry| {
        // SAFETY: `each` gives numbers of elements of both views, which are contiguous; that they have
        // elements of one size and lie apart was checked by `gather_elements`.
        unsafe {
            let value = from.cast::<W>().add(element).read_unaligned();
            to.cast::<W>().add(entry).write_unaligned(value);
        }
    }));
    true
}
