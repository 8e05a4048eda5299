//! Conversion of layouts to parameter words, from which kernels compute the addresses of elements.

use inlay_core::{Error, Layout, Result};
use smallvec::SmallVec;

/// The largest number of elements in a kernel. Element numbers and addresses have 32 bits. The
/// margin below 2^32 is for a grid of threads, which may have up to one row of workgroups more than
/// there are elements, and for chunks that end past the last element.
const MOST: usize = u32::MAX as usize - (1 << 25);

/// The parameter words of a layout: the address of the first element, then the size and the stride
/// of each axis. All are in elements.
pub(crate) type LayoutWords = SmallVec<[u32; 18]>;

/// Converts a number of elements to 32 bits, or fails if it is too large for a kernel.
pub(crate) fn count(elements: usize) -> Result<u32> {
    match u32::try_from(elements) {
        Ok(count) if elements <= MOST => Ok(count),
        _ => Err(Error::Device {
            reason: format!("a tensor of {elements} elements; a kernel counts up to {MOST}"),
        }),
    }
}

/// Returns the size and the strides of the axes of `N` layouts of one shape. Axes that are
/// contiguous with each other in all layouts are merged, and axes of size 1 are left out. A
/// contiguous layout has at most one axis.
fn merged<const N: usize>(layouts: [&Layout; N]) -> SmallVec<[(usize, [isize; N]); 8]> {
    let mut axes: SmallVec<[(usize, [isize; N]); 8]> = SmallVec::new();
    for (axis, &dim) in layouts[0].shape().iter().enumerate() {
        let strides = layouts.map(|layout| layout.strides()[axis]);
        match axes.last_mut() {
            _ if dim == 1 => {}
            // The previous axis continues where this axis ends, in all layouts.
            Some((size, before))
                if *before == strides.map(|stride| stride.wrapping_mul(dim as isize)) =>
            {
                (*size, *before) = (*size * dim, strides);
            }
            _ => axes.push((dim, strides)),
        }
    }
    axes
}

/// Returns the parameter words of a layout of elements of `size` bytes.
pub(crate) fn words(layout: &Layout, size: usize) -> Result<LayoutWords> {
    count(layout.numel())?;
    count(layout.extent(size).map_or(0, |range| range.end) / size)?;
    let mut words = LayoutWords::new();
    words.push((layout.offset() / size) as u32);
    for (dim, [stride]) in merged([layout]) {
        // A negative stride is stored modulo 2^32. Address arithmetic is also modulo 2^32.
        words.extend([dim as u32, (stride / size as isize) as i32 as u32]);
    }
    Ok(words)
}

/// Whether elements of `size` bytes are contiguous and begin at a multiple of 4 bytes.
pub(crate) fn is_dense(layout: &Layout, size: usize) -> bool {
    layout.is_contiguous(size) && (size >= 4 || layout.offset().is_multiple_of(4))
}

/// The largest number of runs that copy commands handle. A kernel copies layouts with more runs.
const RUNS: usize = 256;

/// The smallest length of a run in bytes, if there are several runs.
const RUN: usize = 4 << 10;

/// Splits two layouts of one shape into runs of bytes that are contiguous in both. Returns the
/// offset of each run in both layouts, and the length of a run in bytes. Returns `None` if the runs
/// are too many or too short, or if an offset or the length is not a multiple of 4.
pub(crate) fn runs(from: &Layout, to: &Layout, size: usize) -> Option<(Vec<(u64, u64)>, u64)> {
    if from.numel() == 0 {
        return None;
    }
    let (mut axes, mut bytes) = (merged([from, to]), size);
    if let Some(&(dim, strides)) = axes.last()
        && strides == [size as isize; 2]
    {
        bytes *= dim;
        axes.pop();
    }
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.0))?;
    if count > RUNS || (count > 1 && bytes < RUN) || !bytes.is_multiple_of(4) {
        return None;
    }
    let mut starts = vec![(from.offset() as isize, to.offset() as isize)];
    for (dim, [a, b]) in axes {
        let each =
            |(from, to): (isize, isize)| (0..dim as isize).map(move |k| (from + k * a, to + k * b));
        starts = starts.into_iter().flat_map(each).collect();
    }
    let aligned = |at: isize| u64::try_from(at).ok().filter(|at| at.is_multiple_of(4));
    let starts = starts.into_iter().map(|(from, to)| Some((aligned(from)?, aligned(to)?)));
    Some((starts.collect::<Option<Vec<_>>>()?, bytes as u64))
}
