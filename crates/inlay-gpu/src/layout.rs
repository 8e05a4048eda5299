//! Layouts as kernels read them: words that say where the i-th element lies.

use inlay_core::{Error, Layout, Result};
use smallvec::SmallVec;

/// Elements that a kernel counts, at most. Positions are 32-bit words; a grid of threads has up to a
/// row of groups more than there are elements, and chunks end past the last.
const MOST: usize = u32::MAX as usize - (1 << 25);

/// The first element, and for each axis its size and step; in elements.
pub(crate) type Block = SmallVec<[u32; 18]>;

/// How many elements a shape has, as kernels count them.
pub(crate) fn count(elements: usize) -> Result<u32> {
    match u32::try_from(elements) {
        Ok(count) if elements <= MOST => Ok(count),
        _ => Err(Error::Device {
            reason: format!("a tensor of {elements} elements; a kernel counts up to {MOST}"),
        }),
    }
}

/// The words of a layout of elements of `size` bytes. Axes that continue each other are one, so
/// that a contiguous layout has one at most.
pub(crate) fn block(layout: &Layout, size: usize) -> Result<Block> {
    count(layout.numel())?;
    let size = size as isize;
    let end = layout.extent(size as usize).map_or(0, |range| range.end) / size as usize;
    count(end)?;
    let mut axes: SmallVec<[(usize, isize); 8]> = SmallVec::new();
    for (&dim, &stride) in layout.shape().iter().zip(layout.strides()) {
        if dim == 1 {
            continue;
        }
        let step = stride / size;
        match axes.last_mut() {
            // A step of the axis before is a whole run of this one.
            Some((merged, before)) if *before == step * dim as isize => {
                (*merged, *before) = (*merged * dim, step);
            }
            _ => axes.push((dim, step)),
        }
    }
    let mut words = Block::new();
    words.push((layout.offset() as isize / size) as u32);
    for (dim, step) in axes {
        // Steps back wrap around, as sums of offsets do.
        words.extend([dim as u32, step as i32 as u32]);
    }
    Ok(words)
}

/// Whether elements of `size` bytes lie in order without gaps from the beginning of a word on.
pub(crate) fn is_dense(layout: &Layout, size: usize) -> bool {
    layout.is_contiguous(size) && (size >= 4 || layout.offset().is_multiple_of(4))
}

/// Runs of bytes, at most, that are copied one by one; and how long each is, at least.
const RUNS: usize = 256;
const RUN: usize = 4 << 10;

/// Two layouts of one shape as runs of bytes that lie without gaps in both: where each begins, and
/// how long they are. `None` when they are too many or too short, or not made of whole words.
pub(crate) fn runs(from: &Layout, to: &Layout, size: usize) -> Option<(Vec<(u64, u64)>, u64)> {
    let mut axes: SmallVec<[(usize, isize, isize); 8]> = SmallVec::new();
    let steps = from.strides().iter().zip(to.strides());
    for (&dim, (&a, &b)) in from.shape().iter().zip(steps) {
        if dim == 0 {
            return None;
        }
        match axes.last_mut() {
            _ if dim == 1 => {}
            Some((merged, before_a, before_b))
                if *before_a == a * dim as isize && *before_b == b * dim as isize =>
            {
                (*merged, *before_a, *before_b) = (*merged * dim, a, b);
            }
            _ => axes.push((dim, a, b)),
        }
    }
    let mut bytes = size;
    if let Some(&(dim, a, b)) = axes.last()
        && a == size as isize
        && b == size as isize
    {
        bytes *= dim;
        axes.pop();
    }
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.0))?;
    if count > RUNS || (count > 1 && bytes < RUN) || !bytes.is_multiple_of(4) {
        return None;
    }
    let mut starts = vec![(from.offset() as isize, to.offset() as isize)];
    for (dim, a, b) in axes {
        let each =
            |(from, to): (isize, isize)| (0..dim as isize).map(move |k| (from + k * a, to + k * b));
        starts = starts.into_iter().flat_map(each).collect();
    }
    let words = |at: isize| u64::try_from(at).ok().filter(|at| at.is_multiple_of(4));
    let starts = starts.into_iter().map(|(from, to)| Some((words(from)?, words(to)?)));
    Some((starts.collect::<Option<Vec<_>>>()?, bytes as u64))
}
