//! Layouts as kernels read them: parameter words from which the address of an element is computed.

use inlay_core::{Error, Layout, Result};
use smallvec::SmallVec;

/// The most elements that a kernel counts. Addresses are 32-bit words. A grid of threads has up to a
/// row of workgroups more than there are elements, and chunks end past the last element.
const MOST: usize = u32::MAX as usize - (1 << 25);

/// The address of the first element, and the size and the step of each axis; all in elements.
pub(crate) type LayoutWords = SmallVec<[u32; 18]>;

/// A number of elements as kernels count them.
pub(crate) fn count(elements: usize) -> Result<u32> {
    match u32::try_from(elements) {
        Ok(count) if elements <= MOST => Ok(count),
        _ => Err(Error::Device {
            reason: format!("a tensor of {elements} elements; a kernel counts up to {MOST}"),
        }),
    }
}

/// Axes of size and strides, where axes that continue each other are merged and axes of size 1 are
/// left out. `N` layouts of one shape are merged together. A contiguous layout has one axis at most.
fn merged<const N: usize>(layouts: [&Layout; N]) -> SmallVec<[(usize, [isize; N]); 8]> {
    let mut axes: SmallVec<[(usize, [isize; N]); 8]> = SmallVec::new();
    for (axis, &dim) in layouts[0].shape().iter().enumerate() {
        let strides = layouts.map(|layout| layout.strides()[axis]);
        match axes.last_mut() {
            _ if dim == 1 => {}
            // A step on the axis before passes over all of this axis.
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

/// The words of a layout of elements of `size` bytes.
pub(crate) fn words(layout: &Layout, size: usize) -> Result<LayoutWords> {
    count(layout.numel())?;
    count(layout.extent(size).map_or(0, |range| range.end) / size)?;
    let mut words = LayoutWords::new();
    words.push((layout.offset() / size) as u32);
    for (dim, [stride]) in merged([layout]) {
        // Negative steps wrap around, as sums of addresses do.
        words.extend([dim as u32, (stride / size as isize) as i32 as u32]);
    }
    Ok(words)
}

/// Whether elements of `size` bytes are contiguous and begin at a word.
pub(crate) fn is_dense(layout: &Layout, size: usize) -> bool {
    layout.is_contiguous(size) && (size >= 4 || layout.offset().is_multiple_of(4))
}

/// The most runs that are copied one by one.
const RUNS: usize = 256;

/// The fewest bytes of such a run, if there are several.
const RUN: usize = 4 << 10;

/// Two layouts of one shape as runs of bytes that are contiguous in both: the beginning of each run in
/// both layouts, and the bytes of a run. `None` when the runs are too many or too short, or when they
/// are not made of whole words.
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
