//! Scatters and gathers of a few contiguous elements; see [`few`].

use inlay_core::Layout;

use super::{AxisScatter, Index};
use crate::Src;
use crate::kernels::few::{self, SMALL};
use crate::kernels::positions::{FEW_ENTRIES, read_few};
use crate::number::dispatch_width;
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
}

/// Does a small scatter. Returns false, and writes nothing, if it is not small or an entry is out
/// of range.
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
    let mut room = [0; FEW_ENTRIES];
    if !suits {
        return false;
    }
    let Some(elements) = read_few(index.values, sizes.places, &mut room) else { return false };
    sizes.number(elements);
    if let Some(base) = base {
        let bytes = dst.layout().numel() * size;
        // SAFETY: both views are contiguous and have this many bytes: `Extents::of` has checked
        // `dst`, and `alike` the base. `scatter_elements` has checked that they don't overlap.
        unsafe { dst.origin().copy_from_nonoverlapping(base.origin(), bytes) };
    }
    // SAFETY: both views are contiguous, as checked above, and there are numbers of their elements,
    // because `read_few` has checked the places. `scatter_elements` has checked that they have
    // elements of one size, and of one dtype if they are reduced, and don't overlap.
    unsafe {
        let memory = (dst.origin(), values.origin());
        few::write(memory, elements, (1, dst.dtype()), false, combine);
    }
    true
}

/// Does a small gather. Returns false, and writes nothing, if it is not small or an entry is out of
/// range.
pub(super) fn gather(dst: Target<'_>, src: Src<'_>, axis: usize, index: &Index<'_>) -> bool {
    let size = dst.same_size(&src);
    let Some(sizes) = Extents::of(src.layout(), index.values.layout(), axis, size) else {
        return false;
    };
    let suits =
        index.values.layout().shape() == dst.layout().shape() && dst.layout().is_contiguous(size);
    let mut room = [0; FEW_ENTRIES];
    if !suits {
        return false;
    }
    let Some(elements) = read_few(index.values, sizes.places, &mut room) else { return false };
    sizes.number(elements);
    let (to, from) = (dst.origin(), src.origin());
    dispatch_width!(size, W => {
        for (entry, &element) in elements.iter().enumerate() {
            // SAFETY: both views are contiguous, as checked above, and these are numbers of their
            // elements, because `read_few` has checked the places. `gather_elements` has checked
            // that they have elements of one size and don't overlap.
            unsafe {
                let value = from.cast::<W>().add(element).read_unaligned();
                to.cast::<W>().add(entry).write_unaligned(value);
            }
        }
    });
    true
}
