//! Scatters and gathers of a few contiguous elements; see [`few`].

use inlay_core::{Combine, DType, Layout};

use super::{AxisScatter, Index};
use crate::Src;
use crate::kernels::few::{self, SMALL};
use crate::kernels::positions::{FEW_ENTRIES, IndexValue, from_front, is_inside, read_few};
use crate::number::dispatch_width;
use crate::once::read_once;
use crate::view::Target;

/// The sizes of a contiguous tensor, and of an index for it that has the same shape on all axes but
/// one: the two sizes of the axis, and the product of the sizes after it.
struct Extents {
    places: usize,
    count: usize,
    inner: usize,
}

impl Extents {
    /// Returns the sizes of a tensor, whose elements have `size` bytes, and of its index. Returns
    /// `None` if they have other shapes, if the tensor is not contiguous, or if the call is not
    /// small.
    fn of(whole: &Layout, entries: &Layout, axis: usize, size: usize) -> Option<Self> {
        let (shape, part) = (whole.shape(), entries.shape());
        let fits = shape.len() == part.len()
            && (0..shape.len()).all(|k| k == axis || shape[k] == part[k])
            && whole.numel().saturating_mul(size) <= SMALL
            && entries.numel() <= FEW_ENTRIES
            && whole.is_contiguous(size);
        fits.then(|| Extents {
            places: shape[axis],
            count: part[axis],
            inner: shape[axis + 1..].iter().product(),
        })
    }

    /// Turns the place of each entry into the row-major number of the element that the entry names.
    /// The numbers are in range if all `places` are below the size of the axis.
    fn number(&self, places: &mut [usize]) {
        let Extents { places: size, count, inner, .. } = *self;
        if places.is_empty() {
            return;
        }
        for (outer, lanes) in places.chunks_exact_mut(count * inner).enumerate() {
            if inner == 1 {
                lanes.iter_mut().for_each(|place| *place += outer * size);
                continue;
            }
            for entries in lanes.chunks_exact_mut(inner) {
                for (k, place) in entries.iter_mut().enumerate() {
                    *place = (outer * size + *place) * inner + k;
                }
            }
        }
    }

    /// Calls `with` with the number of each entry and the number of the element that it names. An entry
    /// that is out of range is taken for the first place, and the result is false. It is also
    /// false, without a call, unless the index is a contiguous `i64` or `i32` array. Each value is
    /// loaded once, because another thread may change it.
    #[inline(always)]
    fn each(&self, index: Src<'_>, with: impl FnMut(usize, usize)) -> bool {
        let dense = index.layout().is_contiguous(index.dtype().size());
        match index.dtype() {
            _ if !dense || self.places == 0 => false,
            DType::I64 if self.inner == 1 => self.each_of::<i64>(index, 1, with),
            DType::I64 => self.each_of::<i64>(index, self.inner, with),
            DType::I32 => self.each_of::<i32>(index, self.inner, with),
            _ => false,
        }
    }

    /// [`Extents::each`] for a contiguous index of `T`. It is inlined, so that an `inner` of 1 is a
    /// constant.
    #[inline(always)]
    fn each_of<T: IndexValue>(
        &self,
        index: Src<'_>,
        inner: usize,
        mut with: impl FnMut(usize, usize),
    ) -> bool {
        let (from, entries) = (index.origin().cast::<T>(), index.layout().numel());
        let (mut good, mut entry, mut start) = (true, 0, 0);
        while entry < entries {
            for _ in 0..self.count {
                for k in 0..inner {
                    // SAFETY: the index is contiguous, and its entries are as many as those of
                    // whole groups of `count * inner`: its shape has both sizes.
                    let value = unsafe { read_once(from.add(entry)) };
                    let at = from_front(value.to_i64(), self.places);
                    let inside = is_inside(at, self.places);
                    good &= inside;
                    let at = if inside { at as usize } else { 0 };
                    with(entry, start + at * inner + k);
                    entry += 1;
                }
            }
            start += self.places * inner;
        }
        good
    }
}

/// Does a small scatter. Returns false if it is not small or an entry is out of range. Then nothing is
/// written, unless there is a base: the destination is a fresh one, which is written again.
pub(super) fn scatter(call: &AxisScatter<'_>, base: Option<Src<'_>>, index: &Index<'_>) -> bool {
    let AxisScatter { dst, axis, values, combine } = *call;
    let size = dst.same_size(&values);
    let Some(sizes) = Extents::of(dst.layout(), index.values.layout(), axis, size) else {
        return false;
    };
    let alike = |base: &Src<'_>| {
        base.layout().shape() == dst.layout().shape() && base.layout().is_contiguous(size)
    };
    let suits = index.values.layout().shape() == values.layout().shape()
        && values.layout().is_contiguous(size)
        && base.as_ref().is_none_or(alike)
        && few::supports(combine, dst.dtype(), dst.layout().numel());
    if !suits {
        return false;
    }
    let (to, from) = (dst.origin(), values.origin());
    if let Some(base) = base {
        let bytes = dst.layout().numel() * size;
        // SAFETY: both views are contiguous and have this many bytes: `Extents::of` has checked
        // `dst`, and `alike` the base. `scatter_elements` has checked that they don't overlap.
        unsafe { to.copy_from_nonoverlapping(base.origin(), bytes) };
        if combine == Combine::Assign {
            // One pass over the index reads, checks and uses each entry.
            return dispatch_width!(size, W => sizes.each(index.values, |entry, element| {
                // SAFETY: both views are contiguous, as checked above, and these are numbers of
                // their elements. `scatter_elements` has checked that they have elements of one
                // size and don't overlap.
                unsafe {
                    let value = from.cast::<W>().add(entry).read_unaligned();
                    to.cast::<W>().add(element).write_unaligned(value);
                }
            }));
        }
    }
    let mut room = [0; FEW_ENTRIES];
    let Some(elements) = read_few(index.values, sizes.places, &mut room) else { return false };
    sizes.number(elements);
    // SAFETY: both views are contiguous, as checked above, and there are numbers of their elements,
    // because `read_few` has checked the places. `scatter_elements` has checked that they have
    // elements of one size, and of one dtype if they are reduced, and don't overlap.
    unsafe { few::write((to, from), elements, (1, dst.dtype()), false, combine) };
    true
}

/// Does a small gather to a fresh destination. Returns false if it is not small or an entry is out of
/// range. The destination is then written again.
pub(super) fn gather(dst: Target<'_>, src: Src<'_>, axis: usize, index: &Index<'_>) -> bool {
    let size = dst.same_size(&src);
    let Some(sizes) = Extents::of(src.layout(), index.values.layout(), axis, size) else {
        return false;
    };
    let suits =
        index.values.layout().shape() == dst.layout().shape() && dst.layout().is_contiguous(size);
    if !suits {
        return false;
    }
    let (to, from) = (dst.origin(), src.origin());
    dispatch_width!(size, W => sizes.each(index.values, |entry, element| {
        // SAFETY: both views are contiguous, as checked above, and these are numbers of their
        // elements. `gather_elements` has checked that they have elements of one size and don't
        // overlap.
        unsafe {
            let value = from.cast::<W>().add(element).read_unaligned();
            to.cast::<W>().add(entry).write_unaligned(value);
        }
    }))
}
