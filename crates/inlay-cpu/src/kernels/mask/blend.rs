//! Chooses between two tensors, element by element, by a mask.

use inlay_core::DType;

use crate::arch::{self, Level, Word};
use crate::kernels::boxes::in_boxes;
use crate::kernels::copy::move_run;
use crate::number::dispatch_width;
use crate::view::Target;
use crate::walk::{Run, each_run};
use crate::{Bool8, Dst, Src};

/// `dst = if condition { a } else { b }`, element by element. All views have one shape. If `b` is
/// `None`, `dst` keeps its old values where the condition is false.
///
/// # Panics
/// When the condition is not of bools, when shapes or element sizes differ, or when `dst` overlaps
/// a source.
pub fn blend(dst: Dst<'_>, condition: Src<'_>, a: Src<'_>, b: Option<Src<'_>>) {
    blend_with(arch::level(), dst, condition, a, b);
}

/// [`blend`] at `level`.
pub(super) fn blend_with(
    level: Level,
    dst: Dst<'_>,
    condition: Src<'_>,
    a: Src<'_>,
    b: Option<Src<'_>>,
) {
    let dst = dst.into_target();
    assert_eq!(condition.dtype(), DType::Bool, "true or false");
    dst.expect_apart(&condition);
    dst.expect_apart(&a);
    dst.same_size(&a);
    match b {
        Some(b) => {
            dst.expect_source(&b);
            in_boxes(dst, [condition, a, b], &|dst, [condition, a, b]| {
                choose(level, dst, condition, a, b);
            });
        }
        None => in_boxes(dst, [condition, a], &|dst, [condition, a]| {
            choose(level, dst, condition, a, dst.as_src());
        }),
    }
}

/// [`blend`] of views that were checked.
fn choose(level: Level, dst: Target<'_>, condition: Src<'_>, a: Src<'_>, b: Src<'_>) {
    let size = dst.same_size(&a);
    let layouts = [dst.layout(), condition.layout(), a.layout(), b.layout()];
    dispatch_width!(size, W => {
        // SAFETY: runs lie inside of all layouts, whose shapes were compared. No source overlaps
        // `dst`, and element sizes are the same, as was checked above. Threads have different runs.
        let visit = |run: Run<4>| unsafe {
            let choice = Choice {
                to: dst.origin().offset(run.offsets[0]),
                condition: condition.origin().offset(run.offsets[1]),
                a: a.origin().offset(run.offsets[2]),
                b: b.origin().offset(run.offsets[3]),
                strides: run.strides,
                len: run.len,
            };
            choice.run::<W>(level);
        };
        each_run(layouts, [size, 1, size, size], visit);
    });
}

/// A filling of contiguous elements: where `mask` is true, an element becomes one value; elsewhere
/// it is copied from `old`.
pub(crate) struct Filling {
    pub(crate) to: *mut u8,
    pub(crate) mask: *const u8,
    pub(crate) old: *const u8,
    pub(crate) len: usize,
}

/// A run of [`blend`].
struct Choice {
    to: *mut u8,
    condition: *const u8,
    a: *const u8,
    b: *const u8,
    /// The strides of all four, in this order.
    strides: [isize; 4],
    len: usize,
}

impl Choice {
    /// Writes the run.
    ///
    /// # Safety
    /// All elements can be read, and those of `to` written. The machine has the level.
    unsafe fn run<W: Word>(&self, level: Level) {
        let Choice { to, condition, a, b, strides, len } = *self;
        let [step, step_if, step_a, step_b] = strides;
        let (size, count) = (size_of::<W>() as isize, len as isize);
        // SAFETY: the caller's promise.
        unsafe {
            let is_true = |k: isize| condition.offset(k).cast::<Bool8>().read().get();
            let at = |p: *const u8, by: isize| p.offset(by).cast::<W>().read_unaligned();
            let put = |by: isize, word: W| to.offset(by).cast::<W>().write_unaligned(word);
            // Both values are read before one is chosen, because the compiler vectorizes a choice
            // of values but makes branches of a choice of addresses. It can vectorize only loops
            // with constant strides.
            if strides == [size, 1, 0, size] {
                // The single value is read once, before any write, so it stays in a register.
                let x = at(a, 0);
                if W::fill(&Filling { to, mask: condition, old: b, len }, x, level) {
                    return;
                }
                // In place, the loop uses one pointer, because the compiler can't vectorize a loop
                // with two pointers that may overlap.
                match std::ptr::eq(b, to) {
                    true => (0..count).for_each(|k| {
                        let y = at(to, k * size);
                        put(k * size, if is_true(k) { x } else { y });
                    }),
                    false => (0..count).for_each(|k| {
                        let y = at(b, k * size);
                        put(k * size, if is_true(k) { x } else { y });
                    }),
                }
            } else if strides == [size, 1, size, size] {
                (0..count).for_each(|k| {
                    let (x, y) = (at(a, k * size), at(b, k * size));
                    put(k * size, if is_true(k) { x } else { y });
                });
            } else if strides == [size, 1, size, 0] {
                let y = at(b, 0);
                (0..count).for_each(|k| {
                    let x = at(a, k * size);
                    put(k * size, if is_true(k) { x } else { y });
                });
            } else if step_if == 0 {
                let (from, step_from) = if is_true(0) { (a, step_a) } else { (b, step_b) };
                // In place, the old values are there already.
                if !std::ptr::eq(from, to) {
                    move_run::<W>(to, step, from, step_from, len);
                }
            } else {
                (0..count).for_each(|k| {
                    let (x, y) = (at(a, k * step_a), at(b, k * step_b));
                    put(k * step, if is_true(k * step_if) { x } else { y });
                });
            }
        }
    }
}
