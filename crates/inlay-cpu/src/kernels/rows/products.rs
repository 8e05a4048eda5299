//! The gradients of the factors of a product. The gradient of a factor is the gradient of the
//! product times all other factors.
//!
//! There is no division, so factors may be 0. The product of the other factors is the product of
//! the factors before it times the product of the factors after it, computed in twice the precision
//! if there is such a type.

use std::mem::MaybeUninit;

use half::{bf16, f16};
use inlay_core::Result;
use num_complex::{Complex32, Complex64};

use super::grouped::each_row;
use crate::kernels::copy::copy_to;
use crate::kernels::groups::{Groups, Members};
use crate::kernels::listing::IndexReader;
use crate::kernels::positions::{Positions, Shared};
use crate::kernels::reducer::each;
use crate::memory::{Plain, Scratch};
use crate::number::{Number, dispatch};
use crate::view::Target;
use crate::walk::{Run, Walk};
use crate::{Dst, Src, threads};

/// The number of partial products that are stored on the stack, in the first-level cache. If a
/// place has more factors than this, its partial products are stored in a scratch buffer with an
/// element for every factor.
const KEPT: usize = 2048;

/// The most elements of a row that are multiplied at a time.
const LANES: usize = 64;

/// A number type, and the type in which its products are computed: one of twice the precision,
/// except for `f64` and `Complex64`.
trait Precise: Number {
    type Wide: Plain + std::ops::Mul<Output = Self::Wide>;
    const ONE: Self::Wide;
    fn up(self) -> Self::Wide;
    fn down(wide: Self::Wide) -> Self;
    /// Returns `0 + a * b`, as the recurrence of `scan_rows` computes it.
    fn times(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Returns `a` times the conjugate of `b`.
    fn times_conjugate(a: Self::Wide, b: Self::Wide) -> Self::Wide;
}

macro_rules! precise {
    ($($t:ty => $wide:ty, $one:expr, $zero:expr, $up:expr, $down:expr, $conj:expr);* $(;)?) => { $(
        impl Precise for $t {
            type Wide = $wide;
            const ONE: $wide = $one;
            #[inline(always)]
            fn up(self) -> $wide { ($up)(self) }
            #[inline(always)]
            fn down(wide: $wide) -> $t { ($down)(wide) }
            #[inline(always)]
            fn times(a: $wide, b: $wide) -> $wide { $zero + a * b }
            #[inline(always)]
            fn times_conjugate(a: $wide, b: $wide) -> $wide { a * ($conj)(b) }
        }
    )* };
}
precise!(
    f16 => f32, 1.0, 0.0, f16::to_f32, f16::from_f32, |x| x;
    bf16 => f32, 1.0, 0.0, bf16::to_f32, bf16::from_f32, |x| x;
    f32 => f64, 1.0, 0.0, f64::from, |x| x as f32, |x| x;
    f64 => f64, 1.0, 0.0, |x| x, |x| x, |x| x;
    Complex32 => Complex64, Complex64::new(1.0, 0.0), Complex64::new(0.0, 0.0),
        |x: Complex32| Complex64::new(x.re.into(), x.im.into()),
        |x: Complex64| Complex32::new(x.re as f32, x.im as f32), |x: Complex64| x.conj();
    Complex64 => Complex64, Complex64::new(1.0, 0.0), Complex64::new(0.0, 0.0),
        |x| x, |x| x, |x: Complex64| x.conj();
);

/// The arguments of a call: the destination, the factors, the gradient of the product and the first
/// factors, with a walk over the rows of all four, and the entries grouped by place.
struct Factors<'a> {
    /// Destination, factors, gradient and first factors. The destination is also written.
    sources: [Src<'a>; 4],
    rows: Walk<4>,
    steps: [isize; 4],
    groups: Groups,
    entries: usize,
}

/// `dst[i] = g[index[i]]` times the conjugate of a product, along `axis`. The product is that of
/// all `x[j]` with `j != i` and `index[j] == index[i]`, and of `first[index[i]]` if `first` is
/// given. For floats and complex numbers.
///
/// # Errors
/// No memory for the scratch buffers.
///
/// # Panics
/// When the views don't fit together in shape or dtype, when `dst` overlaps a source, when the
/// dtype is neither float nor complex, or when the positions were checked for an axis larger than
/// that of `g`.
pub fn products_of_others(
    dst: Dst<'_>,
    g: Src<'_>,
    x: Src<'_>,
    first: Option<Src<'_>>,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    let dst = dst.into_target();
    assert_eq!(dst.layout().shape(), x.layout().shape(), "a gradient for each factor");
    let factors = Factors::new(dst, [x, g, first.unwrap_or(g)], axis, index)?;
    dispatch!(field dst.dtype(), T => match factors.is_narrow() {
        true => factors.others::<T, 1>(first.is_some()),
        false => factors.others::<T, LANES>(first.is_some()),
    },
        else unreachable!("inference refuses gradients of {}", dst.dtype()))
}

/// `dst[p] = g[p]` times the conjugate of the product of all `x[i]` with `index[i] == p`, along
/// `axis`.
///
/// # Errors
/// No memory for the groups.
///
/// # Panics
/// As for [`products_of_others`].
pub fn products_of_all(
    dst: Dst<'_>,
    g: Src<'_>,
    x: Src<'_>,
    axis: usize,
    index: &Positions,
) -> Result<()> {
    let dst = dst.into_target();
    assert_eq!(dst.layout().shape(), g.layout().shape(), "a gradient for each place");
    let factors = Factors::new(dst, [x, g, g], axis, index)?;
    copy_to(dst, g);
    dispatch!(field dst.dtype(), T => match factors.is_narrow() {
        true => factors.all::<T, 1>(),
        false => factors.all::<T, LANES>(),
    },
        else unreachable!("inference refuses gradients of {}", dst.dtype()));
    Ok(())
}

impl<'a> Factors<'a> {
    fn new(dst: Target<'a>, sources: [Src<'a>; 3], axis: usize, index: &Positions) -> Result<Self> {
        for src in &sources {
            dst.expect_apart(src);
            assert_eq!(dst.dtype(), src.dtype(), "one dtype");
        }
        let [x, g, first] = sources;
        let sources = [dst.as_src(), x, g, first];
        let layouts = sources.map(|src| src.layout());
        let steps = layouts.map(|layout| layout.strides()[axis]);
        let rows = Walk::of_rows(layouts, axis);
        let [_, entries, places, others] = layouts.map(|layout| layout.shape()[axis]);
        assert_eq!(index.values().len(), entries, "a place for each row");
        index.expect_within(places);
        assert_eq!(places, others, "g and first have equally many places");
        let index = IndexReader::Checked(index);
        let groups = Groups::of(&index, places, false, entries, |entry| entry)?;
        let groups = groups.unwrap_or_else(|| unreachable!("positions were checked"));
        Ok(Factors { sources, rows, steps, groups, entries })
    }

    /// Returns whether elements are multiplied one at a time, because the elements of a row are
    /// further apart in memory than the rows, or a row has one element.
    fn is_narrow(&self) -> bool {
        let apart = self.rows.run_strides()[1].unsigned_abs() > self.steps[1].unsigned_abs();
        apart || self.rows.run_len() == 1
    }

    /// Splits the rows of every group into runs that are multiplied at a time, and calls `visit`
    /// with each run, its place and the entries of the place. No two calls have both the same
    /// elements and the same place.
    fn each<T: Precise, const LANES: usize>(
        &self,
        visit: impl Fn(&Run<4>, usize, Members<'_>) + Sync,
    ) {
        let Factors { rows, groups, entries, .. } = self;
        let threads = threads::num_threads();
        let columns = if groups.largest() > entries / threads { threads } else { 1 };
        let cost = 4 * size_of::<T>() * (1 + entries / groups.len().max(1));
        let cut = |part: usize, parts: usize| groups.cut(part, parts);
        each_row(rows, &cut, size_of::<T>(), cost, columns, |run, group| {
            let (place, members) = (groups.place(group), groups.members(group));
            if members.len() == 0 {
                return;
            }
            let width = (KEPT / members.len()).clamp(1, LANES);
            for start in (0..run.len).step_by(width) {
                let by = |n: usize| run.offsets[n] + start as isize * run.strides[n];
                let part = Run {
                    position: run.position + start,
                    offsets: std::array::from_fn(by),
                    len: (run.len - start).min(width),
                    ..run
                };
                visit(&part, place, members);
            }
        });
    }

    /// Returns the address of a run's first element in a row of the source `which`, and its stride.
    fn at(&self, which: usize, run: &Run<4>, row: usize) -> (*const u8, isize) {
        let by = run.offsets[which] + row as isize * self.steps[which];
        (self.sources[which].origin().wrapping_offset(by), run.strides[which])
    }

    fn others<T: Precise, const LANES: usize>(&self, own: bool) -> Result<()> {
        let width = self.rows.len();
        let large = self.groups.largest() > KEPT;
        let spare = if large { self.entries.saturating_mul(width) } else { 0 };
        let mut spare = Scratch::<T::Wide>::new(spare)?;
        let spare = Shared(spare.as_mut_ptr());
        self.each::<T, LANES>(|run, place, members| {
            let (n, count) = (run.len, members.len());
            let mut kept = [MaybeUninit::<T::Wide>::uninit(); KEPT];
            let kept = kept.as_mut_ptr().cast::<T::Wide>();
            // Partial products that don't fit on the stack are stored by the numbers of their entry
            // and element.
            let kept = |k: usize| match count > KEPT {
                true => spare.get().wrapping_add(members.get(k) * width + run.position),
                false => kept.wrapping_add(k * n),
            };
            let mut product = [T::ONE; LANES];
            // SAFETY: `Factors::new` and its callers have checked dtypes, shapes, positions and
            // overlap. The walk keeps the run inside of the rows, and the place and the entries lie
            // inside of their axes. There is room for `n` products of each entry, which are written
            // before they are read. No other thread has these elements.
            unsafe {
                if own {
                    let (from, stride) = self.at(3, run, place);
                    each::<T>(n, (from, stride), |k, value| product[k] = value.up());
                }
                for member in 0..count {
                    let before = kept(member);
                    each::<T>(n, self.at(1, run, members.get(member)), |k, value| {
                        before.add(k).write(product[k]);
                        product[k] = T::times(value.up(), product[k]);
                    });
                }
                let mut gradient = [T::ONE; LANES];
                each::<T>(n, self.at(2, run, place), |k, value| gradient[k] = value.up());
                product = [T::ONE; LANES];
                for member in (0..count).rev() {
                    let (entry, before) = (members.get(member), kept(member));
                    let (to, stride) = self.at(0, run, entry);
                    each::<T>(n, self.at(1, run, entry), |k, value| {
                        let others = before.add(k).read() * product[k];
                        let grad = T::down(T::times_conjugate(gradient[k], others));
                        to.cast_mut().offset(k as isize * stride).cast::<T>().write_unaligned(grad);
                        product[k] = T::times(value.up(), product[k]);
                    });
                }
            }
        });
        Ok(())
    }

    fn all<T: Precise, const LANES: usize>(&self) {
        self.each::<T, LANES>(|run, place, members| {
            let n = run.len;
            let mut product = [T::ONE; LANES];
            // SAFETY: as for `others`.
            unsafe {
                each::<T>(n, self.at(1, run, members.get(0)), |k, value| product[k] = value.up());
                for member in 1..members.len() {
                    each::<T>(n, self.at(1, run, members.get(member)), |k, value| {
                        product[k] = product[k] * value.up();
                    });
                }
                let (to, stride) = self.at(0, run, place);
                each::<T>(n, self.at(2, run, place), |k, value| {
                    let grad = T::down(T::times_conjugate(value.up(), product[k]));
                    to.cast_mut().offset(k as isize * stride).cast::<T>().write_unaligned(grad);
                });
            }
        });
    }
}
